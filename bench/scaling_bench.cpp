// Cost over the number of frames: a training step of clips of growing length (small models, configs/mini), and a frame of
// generation after more and more frames (the paper's size). Rows are scaling.<quantity>.<model>.<frames>.
#include <ATen/ATen.h>

#include "bench/generator.h"
#include "bench/harness.h"
#include "bench/training_step.h"
#include "convssm/base/log.h"
#include "convssm/ops/memory_meter.h"

namespace convssm::bench {
namespace {

constexpr int64_t kLengths[] = {25, 50, 100, 200, 400, 800};
constexpr int64_t kAges[] = {100, 200, 400, 800, 1200};
constexpr int64_t kWhole = 1200;  // frames that ConvS5 really generates
constexpr int64_t kMark = 100;    // of these make one point

void bench_length(const BenchModel& subject, int64_t length, const Report& report) {
  TrainingStep step(subject, subject.clip(length + 1));
  subject.model->zero_grad();
  uint64_t peak = 0;
  {
    const ops::MemoryMeter meter;
    step.run();
    peak = meter.peak();
  }
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) times.push_back(milliseconds([&] { step.run(); }));
  const auto name = [&](const char* quantity) {
    return fmt::format("scaling.{}.{}.{}", quantity, subject.name, length);
  };
  report(single(name("train"), quantile(times, 0.5) / 1000, "s", "one training step of a clip"));
  report(single(name("memory"), 1e-6 * static_cast<double>(peak), "MB", "tensors at its peak, without parameters"));
}

double frame_milliseconds(const BenchModel& subject, int64_t age) {
  const Generator next = make_generator(subject, state_after(subject, age));
  next();
  std::vector<double> times;
  for (double spent = 0; spent < 1000 && times.size() < 20; spent += times.back()) times.push_back(milliseconds(next));
  return quantile(times, 0.5);
}

// Every frame of a long rollout, to see that its cost stays.
void bench_whole_rollout(const Report& report) {
  const BenchModel subject = make_bench_model("paper", "convs5");
  const Generator next = make_generator(subject, state_after(subject, 2));
  std::vector<double> times;
  for (int64_t frame = 1; frame <= kWhole; ++frame) {
    times.push_back(milliseconds(next));
    if (frame % kMark != 0) continue;
    report(single(fmt::format("scaling.rollout.convs5.{}", frame), quantile(times, 0.5), "ms",
                  fmt::format("median of the {} frames before, all generated", kMark)));
    times.clear();
  }
}

}  // namespace

void bench_scaling(const Settings& settings, const Report& report) {
  for (const char* name : {"convs5", "convlstm", "convgru", "s5", "performer", "transformer"}) {
    if (!settings.wants(name)) continue;
    log_info("scaling: training, {}", display_name(name));
    const BenchModel subject = make_bench_model("mini", name);
    for (const int64_t length : kLengths) bench_length(subject, length, report);
  }
  for (const char* name : {"convlstm", "performer", "transformer", "transformer_recompute"}) {
    if (!settings.wants(name)) continue;
    log_info("scaling: generation, {}", display_name(name));
    const BenchModel subject = make_bench_model("paper", name);
    for (const int64_t age : kAges) {
      report(single(fmt::format("scaling.generate.{}.{}", name, age), frame_milliseconds(subject, age), "ms",
                    fmt::format("one frame after {}", age)));
    }
  }
  if (!settings.wants("convs5")) return;
  log_info("scaling: generation, ConvS5, {} frames", kWhole);
  bench_whole_rollout(report);
}

}  // namespace convssm::bench
