#include "convssm/serve/host.h"

namespace convssm::serve {
namespace {

constexpr std::chrono::milliseconds kAttention{100};

// A page that reloads or comes back after a pause connects before its old connection is known to be gone.
ServerOptions with_room(ServerOptions server, const VisitorLimits& limits) {
  server.walks = limits.visitors + limits.visitors / 2 + 8;
  return server;
}

}  // namespace

Host::Host(Scene& scene, const HostOptions& options)
    : visitors_(scene, options.limits), server_(with_room(options.server, options.limits), handlers()) {}

Host::~Host() { tasks_.close(); }

Handlers Host::handlers() {
  return {[this](std::function<void()> work) { tasks_.post(std::move(work)); },
          [this](std::string& visitor, std::string_view message) {
            return visitors_.answer(visitor, parse_request(message));
          },
          [this](const std::string& visitor) { return visitors_.recording(visitor); }};
}

void Host::run(const std::function<bool()>& stop) {
  while (!stop()) {
    tasks_.run_one(kAttention);
    visitors_.forget_idle();
  }
}

}  // namespace convssm::serve
