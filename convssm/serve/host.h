// The whole service: a scene, its visitors and the connections to them. The model runs on the thread that calls run().
//   Scene scene(model, beginnings_in("maze", worlds, 36));   Host host(scene, {});   host.run([&] { return stop.asked(); });
#pragma once

#include <functional>

#include "convssm/serve/scene.h"
#include "convssm/serve/server.h"
#include "convssm/serve/tasks.h"
#include "convssm/serve/visitors.h"

namespace convssm::serve {

struct HostOptions {
  ServerOptions server = {};
  VisitorLimits limits = {};
};

class Host {
 public:
  // Connections are taken from now on and answered by run(). The scene must outlive it.
  Host(Scene& scene, const HostOptions& options);
  ~Host();

  // Until `stop` says so, which it is asked several times a second.
  void run(const std::function<bool()>& stop);

  std::string address() const { return server_.address(); }
  int port() const { return server_.port(); }

  // What `look` returns of the visitors, between two requests; from any thread while run() runs.
  template <typename Look>
  auto ask(const Look& look) {
    return tasks_.ask([&] { return look(std::as_const(visitors_)); });
  }

 private:
  Handlers handlers();

  Visitors visitors_;
  Tasks tasks_;
  Server server_;  // ends first
};

}  // namespace convssm::serve
