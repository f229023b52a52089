// Frames a second of the worlds on one core, in processor time: whole clips as training asks for them, the making of the
// world and the search for revisits included; and rendering alone.
#include <time.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "bench/harness.h"
#include "convssm/worlds/record.h"

namespace convssm::bench {
namespace {

constexpr int64_t kFrames = 300;

// Of this thread, which does all the work: what else runs on the machine does not count.
double processor_milliseconds(const std::function<void()>& action) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  action();
  return now() - start;
}

void bench_world(const std::string& name, int rounds, const Report& report) {
  const auto source = worlds::make_worlds({{"name", name}}, 1);
  const auto world = source->at("train", 0);
  const worlds::Recorded walk = worlds::record(world, 0, kFrames);
  std::vector<uint8_t> frame(static_cast<size_t>(world->view().bytes()));
  uint64_t index = 0;
  std::vector<double> clips, frames;
  for (int round = 0; round < rounds; ++round) {
    clips.push_back(processor_milliseconds([&] { worlds::record(source->at("train", ++index), 0, kFrames); }));
    frames.push_back(processor_milliseconds([&] {
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
