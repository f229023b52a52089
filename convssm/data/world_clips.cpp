// From the bytes of a recorded walk to clips. A later window of a clip is walked up to its first frame and rendered from
// there, which costs next to nothing more than the window itself.
#include "convssm/data/world_clips.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/option_reader.h"
#include "convssm/worlds/record.h"

namespace convssm::data {
namespace {

at::Tensor row_of_numbers(const std::vector<int64_t>& values) {
  const at::Tensor row = at::empty({1, static_cast<int64_t>(values.size())}, at::kLong);
  std::ranges::copy(values, row.data_ptr<int64_t>());
  return row;
}

class WorldClips : public Dataset {
 public:
  WorldClips(const WorldClipsOptions& options, std::shared_ptr<const worlds::Worlds> source)
      : options_(options), worlds_(std::move(source)) {}

  Clips clip(Split split, uint64_t index, int64_t frames) const override { return part(split, index, 0, frames); }

  Clips part(Split split, uint64_t index, int64_t first, int64_t frames) const override {
    const worlds::Recorded walk = worlds::record(world(split, index), first, frames, options_.revisit);
    return {.video = world_video(walk.video, worlds_->view()),
            .actions = row_of_numbers(walk.actions),
            .revisit = row_of_numbers(walk.revisit)};
  }

  at::Tensor revisits(Split split, uint64_t index, int64_t frames) const override {
    return part(split, index, 0, frames).revisit[0];  // what is in view, the renderer says
  }

  // `pose`: x to the east and y to the south in cells, and the angle in radians, 0 to the east, growing to the right.
  std::vector<io::NamedArray> extras(Split split, uint64_t index, int64_t frames) const override {
    std::vector<float> poses;
    for (const worlds::Pose& pose : worlds::record_poses(world(split, index), 0, frames).poses) {
      for (const double x : {worlds::cells(pose.x), worlds::cells(pose.y), worlds::radians(pose.heading)}) {
        poses.push_back(static_cast<float>(x));
      }
    }
    return {{"pose", io::make_array({frames, 3}, poses)}};
  }

  uint64_t size(Split split) const override { return options_.counts.of(split); }
  int64_t longest(Split) const override { return any_length; }
  FrameFormat format() const override { return {3, worlds_->view().height, worlds_->view().width}; }
  ActionFormat actions() const override { return {static_cast<int64_t>(worlds_->actions().size()), 0}; }

  std::vector<std::string> summary() const override {
    std::vector<std::string> lines = worlds_->summary();
    lines.push_back(options_.counts.text() + ", each in a world of its own");
    lines.push_back(fmt::format("{} actions: {}", worlds_->actions().size(), fmt::join(worlds_->actions(), ", ")));
    return lines;
  }

 private:
  std::shared_ptr<const worlds::World> world(Split split, uint64_t index) const {
    return worlds_->at(name(split), index % size(split));
  }

  WorldClipsOptions options_;
  std::shared_ptr<const worlds::Worlds> worlds_;
};

}  // namespace

WorldClipsOptions take_clips_options(const std::string& world, nlohmann::json& json) {
  if (!json.is_object()) fail(ErrorKind::usage, "[{}] expected options, got {}", world, json.dump());
  WorldClipsOptions o;
  nlohmann::json own = nlohmann::json::object();
  for (const char* key : {"clips", "valid_clips", "test_clips", "revisit_overlap", "revisit_gap"}) {
    if (!json.contains(key)) continue;
    own[key] = json[key];
    json.erase(key);
  }
  OptionReader read(world, own);
  o.counts.read_options(read);
  read("revisit_overlap", o.revisit.overlap);
  read("revisit_gap", o.revisit.gap);
  read.finish();
  if (!(o.revisit.overlap > 0 && o.revisit.overlap <= 1)) {
    fail(ErrorKind::usage, "[{}] revisit_overlap must be above 0 and at most 1, got {}", world, o.revisit.overlap);
  }
  if (o.revisit.gap < 1) fail(ErrorKind::usage, "[{}] revisit_gap must be positive, got {}", world, o.revisit.gap);
  return o;
}

at::Tensor world_video(const std::vector<uint8_t>& frames, const worlds::View& view) {
  const int64_t pixels = view.width * view.height, T = static_cast<int64_t>(frames.size()) / (3 * pixels);
  std::array<float, 256> values;
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(2.0 * static_cast<double>(i) / 255 - 1);
  at::Tensor video = at::empty({1, T, 3, view.height, view.width}, at::kFloat);
  float* to = video.data_ptr<float>();
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t c = 0; c < 3; ++c) {
      const uint8_t* from = frames.data() + 3 * t * pixels + c;
      for (int64_t p = 0; p < pixels; ++p) *to++ = values[from[3 * p]];
    }
  }
  return video;
}

std::vector<DatasetInfo> world_datasets() {
  std::vector<DatasetInfo> all;
  for (const worlds::WorldInfo& world : worlds::all_worlds()) {
    all.push_back({world.name, world.summary, [world](const nlohmann::json& options, uint64_t seed) {
                     return make_world_clips(world, options, seed);
                   }});
  }
  return all;
}

std::shared_ptr<const Dataset> make_world_clips(const worlds::WorldInfo& world, const nlohmann::json& options,
                                                uint64_t seed) {
  nlohmann::json rest = options;
  const WorldClipsOptions own = take_clips_options(world.name, rest);
  return std::make_shared<WorldClips>(own, world.make(rest, seed));
}

}  // namespace convssm::data
