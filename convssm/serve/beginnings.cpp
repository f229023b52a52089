// A walk in a world is recorded as the dataset of that world does it, so a model sees what it was tested on.
#include "convssm/serve/beginnings.h"

#include <ATen/ATen.h>

#include "convssm/base/error.h"
#include "convssm/data/world_clips.h"
#include "convssm/worlds/record.h"

namespace convssm::serve {
namespace {

class WorldBeginnings : public Beginnings {
 public:
  WorldBeginnings(const std::string& name, std::shared_ptr<const worlds::Worlds> worlds, int64_t frames)
      : name_(name), worlds_(std::move(worlds)), frames_(frames) {}

  int64_t count() const override { return kWorlds; }
  std::vector<std::string> action_names() const override { return worlds_->actions(); }
  std::string world() const override { return name_; }

  Beginning at(int64_t number) const override {
    const auto world = worlds_->at("test", static_cast<uint64_t>(number));
    const worlds::Recorded walk = worlds::record(world, 0, frames_);
    return {{.video = data::world_video(walk.video, worlds_->view()), .actions = at::tensor(walk.actions).unsqueeze(0)},
            world,
            walk.poses.back()};
  }

 private:
  static constexpr int64_t kWorlds = 1'000'000;  // there is no last one
  std::string name_;
  std::shared_ptr<const worlds::Worlds> worlds_;
  int64_t frames_;
};

class RecordedBeginnings : public Beginnings {
 public:
  explicit RecordedBeginnings(const data::Clips& clips) : clips_(clips) {}
  int64_t count() const override { return clips_.batch(); }
  Beginning at(int64_t number) const override { return {data::rows_of(clips_, number, number + 1), nullptr, {}}; }

 private:
  data::Clips clips_;
};

}  // namespace

std::unique_ptr<Beginnings> beginnings_in(const std::string& name, std::shared_ptr<const worlds::Worlds> worlds,
                                          int64_t frames) {
  if (frames < 1) fail(ErrorKind::usage, "[serve] a context needs at least 1 frame, got {}", frames);
  return std::make_unique<WorldBeginnings>(name, std::move(worlds), frames);
}

std::unique_ptr<Beginnings> beginnings_after(const data::Clips& clips) {
  if (clips.batch() < 1 || clips.frames() < 1) fail(ErrorKind::data, "[serve] there is no clip to begin after");
  return std::make_unique<RecordedBeginnings>(clips);
}

}  // namespace convssm::serve
