// A host of a tiny scene whose model runs on a thread of its own.
#pragma once

#include <atomic>
#include <thread>

#include "convssm/serve/host.h"
#include "tests/serve/tiny_scene.h"

namespace convssm::testing {

class RunningHost {
 public:
  explicit RunningHost(bool codes = false, serve::HostOptions options = {})
      : tiny_(codes),
        host_(tiny_.scene, on_any_port(std::move(options))),
        thread_([this] { host_.run([this] { return stop_.load(); }); }) {}
  ~RunningHost() {
    stop_ = true;
    thread_.join();
  }

  serve::Host& host() { return host_; }
  models::Model& model() { return *tiny_.model; }
  int port() const { return host_.port(); }

  // The state of a visitor's branch.
  models::State state(const std::string& visitor, int64_t branch) {
    return host_.ask([&](const serve::Visitors& all) { return all.visit(visitor).now(branch).state; });
  }
  int64_t visitors() {
    return host_.ask([](const serve::Visitors& all) { return all.count(); });
  }

 private:
  static serve::HostOptions on_any_port(serve::HostOptions options) {
    options.server.port = 0;
    return options;
  }

  TinyScene tiny_;
  serve::Host host_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace convssm::testing
