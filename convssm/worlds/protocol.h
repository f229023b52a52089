// What a walk is for. Beside the plain walk there are three that test a memory: they have a first part, in which a place is
// seen, and from frame `second` on a second one, in which it comes back.
//   walk       to random goals, without an end
//   retrieval  frames before `second` walk out; then 12 frames turn around and the same way is walked back, position by
//              position: frame second + 11 + k is where frame second - 1 - k was, looking the other way. Then out again, ...
//   loop       leaves a place and returns to it by another way before `second`, then goes round again, and again
//   reasoning  all of a small region is explored before `second`, after it come random walks in it
#pragma once

#include <cstdint>
#include <string>

#include "convssm/base/option_reader.h"
#include "convssm/worlds/revisit.h"
#include "convssm/worlds/world.h"

namespace convssm::worlds {

enum class Protocol { walk, retrieval, loop, reasoning };

const char* name(Protocol protocol);
Protocol parse_protocol(const std::string& text);

// The options that all worlds have.
struct WorldOptions {
  View view;
  Protocol protocol = Protocol::walk;
  int64_t second = 144;  // the first frame of the second part

  // Reads image_size, fov, samples, protocol and second.
  void read(OptionReader& reader);
  void check(const char* owner) const;
};

// Worlds of a split are those whose key falls into its share of all keys: 8 of 10 to train, one each to valid and test.
bool in_split(uint64_t key, std::string_view split);

// A policy that has actions in stock, a plan at a time.
class PlannedPolicy : public Policy {
 public:
  int64_t next() final {
    while (at_ == plan_.size()) {
      plan_ = more();
      at_ = 0;
    }
    return plan_[at_++];
  }

 protected:
  virtual std::vector<int64_t> more() = 0;

 private:
  std::vector<int64_t> plan_;
  size_t at_ = 0;
};

// The first second - 1 actions of `out`, half a turn (`half_turn` times `turn`), the way back, half a turn, and so on without end.
// `reversed` is the action that undoes another one after half a turn.
std::unique_ptr<Policy> out_and_back(std::unique_ptr<Policy> out, int64_t second, int64_t turn, int64_t half_turn,
                                     std::vector<int64_t> reversed);

}  // namespace convssm::worlds
