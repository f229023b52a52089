// Protocols by name, the options of all worlds, and the walk out and back, which needs to know nothing of the world.
#include "convssm/worlds/protocol.h"

#include <fmt/format.h>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"

namespace convssm::worlds {
namespace {

constexpr Protocol kAll[] = {Protocol::walk, Protocol::retrieval, Protocol::loop, Protocol::reasoning};

class OutAndBack : public PlannedPolicy {
 public:
  OutAndBack(std::unique_ptr<Policy> out, int64_t second, int64_t turn, int64_t half_turn,
             std::vector<int64_t> reversed)
      : turn_(static_cast<size_t>(half_turn), turn) {
    for (int64_t i = 1; i < second; ++i) out_.push_back(out->next());
    for (size_t i = out_.size(); i > 0; --i) back_.push_back(reversed[static_cast<size_t>(out_[i - 1])]);
  }

 protected:
  std::vector<int64_t> more() override {
    switch (leg_++ % 4) {
      case 0:
        return out_;
      case 2:
        return back_;
      default:
        return turn_;
    }
  }

 private:
  std::vector<int64_t> out_, back_, turn_;
  uint64_t leg_ = 0;
};

}  // namespace

const char* name(Protocol protocol) {
  switch (protocol) {
    case Protocol::walk:
      return "walk";
    case Protocol::retrieval:
      return "retrieval";
    case Protocol::loop:
      return "loop";
    case Protocol::reasoning:
      return "reasoning";
  }
  return "?";
}

Protocol parse_protocol(const std::string& text) {
  std::vector<std::string> names;
  for (const Protocol protocol : kAll) {
    if (text == name(protocol)) return protocol;
    names.emplace_back(name(protocol));
  }
  fail_unknown("[world] unknown protocol", text, names);
}

void WorldOptions::read(OptionReader& reader) {
  int64_t side = view.width;
  reader("image_size", side);
  view.width = view.height = side;
  reader("fov", view.fov);
  reader("samples", view.samples);
  reader("protocol", [this](const std::string& text) { protocol = parse_protocol(text); });
  reader("second", second);
}

void WorldOptions::check(const char* owner) const {
  const auto require = [owner](bool good, const char* text, auto found) {
    if (!good) fail(ErrorKind::usage, "[{}] {}, got {}", owner, text, found);
  };
  require(view.width >= 8 && view.width <= 1024 && view.width % 2 == 0, "image_size must be an even number, 8 to 1024",
          view.width);
  require(view.fov >= 20 && view.fov <= 140, "fov must be 20 to 140 degrees", view.fov);
  require(view.samples >= 1 && view.samples <= 4, "samples must be 1 to 4", view.samples);
  require(second >= 2 && second <= 1'000'000, "second must be 2 to 1000000 frames", second);
}

bool in_split(uint64_t key, std::string_view split) {
  const uint64_t share = key % 10;
  if (split == "train") return share < 8;
  if (split == "valid") return share == 8;
  if (split == "test") return share == 9;
  fail(ErrorKind::usage, "[world] a split is train, valid or test, got '{}'", split);
}

std::unique_ptr<Policy> out_and_back(std::unique_ptr<Policy> out, int64_t second, int64_t turn, int64_t half_turn,
                                     std::vector<int64_t> reversed) {
  return std::make_unique<OutAndBack>(std::move(out), second, turn, half_turn, std::move(reversed));
}

}  // namespace convssm::worlds
