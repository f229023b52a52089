// All visitors: who they are, how many there may be, what memory their walks may take. For one thread, that of the model.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "convssm/serve/protocol.h"
#include "convssm/serve/visit.h"

namespace convssm::serve {

struct VisitorLimits {
  int64_t visitors = 32;
  int64_t rewind = 300;                 // moments of a branch that are kept
  uint64_t memory = uint64_t{1} << 30;  // bytes of all kept moments; beyond it whoever keeps most forgets the oldest
  std::chrono::seconds idle{600};       // a visitor who is silent for so long is forgotten
};

class Visitors {
 public:
  using Clock = std::chrono::steady_clock;

  Visitors(Scene& scene, const VisitorLimits& limits);

  // The answer to a request of `visitor`, whom `join` names; `visitor` is "" before. Throws what error_reply() tells.
  Reply answer(std::string& visitor, const Request& request, Clock::time_point now = Clock::now());

  // The animation that a visitor recorded last, if it is complete; otherwise null.
  std::shared_ptr<const std::string> recording(const std::string& visitor) const;

  void forget_idle(Clock::time_point now = Clock::now());

  int64_t count() const { return static_cast<int64_t>(visits_.size()); }
  uint64_t memory() const { return *used_; }
  const Visit& visit(const std::string& visitor) const;  // Error(usage) if there is none

 private:
  struct Guest {
    Visit visit;
    Clock::time_point seen;  // when it last asked for something
  };

  Guest& guest(const std::string& visitor);
  Reply join(std::string& visitor, const Request& request, Clock::time_point now);
  void spare_memory();
  Reply welcome(const std::string& visitor) const;

  Scene& scene_;
  VisitorLimits limits_;
  std::shared_ptr<uint64_t> used_ = std::make_shared<uint64_t>(0);  // bytes
  std::map<std::string, Guest> visits_;
};

// The present of a walk: the length of a JSON text (4 bytes, little endian), the text, and for each branch the RGBA pixels of
// the model's frame and, if there is a world, of the true one.
Reply view_reply(const Visit& visit);

}  // namespace convssm::serve
