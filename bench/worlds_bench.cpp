// Frames a second of the worlds on one core: clips of 300 frames as training asks for them, the making of the world and
// the search for revisits included; and rendering alone.
#include <nlohmann/json.hpp>

#include "bench/harness.h"
#include "convssm/worlds/record.h"

namespace convssm::bench {
namespace {

constexpr int64_t kFrames = 300;

void bench_world(const std::string& name, int rounds, const Report& report) {
  const auto source = worlds::make_worlds({{"name", name}}, 1);
  const auto world = source->at("train", 0);
  const worlds::Recorded walk = worlds::record(world, 0, kFrames);
  std::vector<uint8_t> frame(static_cast<size_t>(world->view().bytes()));
  uint64_t index = 0;
  std::vector<double> clips, frames;
  for (int round = 0; round < rounds; ++round) {
    clips.push_back(milliseconds([&] { worlds::record(source->at("train", ++index), 0, kFrames); }));
    frames.push_back(milliseconds([&] {
      for (const worlds::Pose& pose : walk.poses) world->render(pose, frame);
    }));
  }
  const auto rate = [](const std::vector<double>& times) { return 1000.0 * kFrames / quantile(times, 0.5); };
  const std::string size = std::to_string(world->view().width);
  report(single("worlds." + name, rate(clips), "frames/s",
                "whole clips of 300 frames of " + size + "x" + size + ", one core"));
  report(single("worlds." + name + ".render", rate(frames), "frames/s", "rendering alone"));
}

}  // namespace

void bench_worlds(const Settings& settings, const Report& report) {
  for (const char* name : {"maze", "terrain"}) bench_world(name, settings.rounds, report);
}

}  // namespace convssm::bench
