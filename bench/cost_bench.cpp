// The paper's cost table for this machine: every model at the paper's size, its parameters, arithmetic, training time and
// memory, and the speed of generation after 400, 800 and 1200 frames. Rows are cost.<model>.<quantity>.
#include <ATen/ATen.h>

#include "bench/generator.h"
#include "bench/harness.h"
#include "bench/training_step.h"
#include "convssm/base/log.h"
#include "convssm/models/flops.h"
#include "convssm/ops/memory_meter.h"

namespace convssm::bench {
namespace {

constexpr int64_t kClip = 21;                   // frames of the training step, 20 of them predicted
constexpr double kGenerateMilliseconds = 2500;  // at each age
constexpr size_t kMostFrames = 40;              // generated at each age
constexpr int64_t kAges[] = {400, 800, 1200};

double parameter_bytes(const BenchModel& subject) {
  return 4 * static_cast<double>(models::parameter_count(*subject.model));
}

// The first step is measured for its memory, the second for its time.
void bench_training(const BenchModel& subject, const Report& report) {
  TrainingStep step(subject, subject.clip(kClip));
  subject.model->zero_grad();
  double bytes = parameter_bytes(subject);
  {
    const ops::MemoryMeter meter;
    step.run();
    bytes += static_cast<double>(meter.peak());
  }
  const double seconds = milliseconds([&] { step.run(); }) / 1000;
  report(single(fmt::format("cost.{}.train", subject.name), seconds / static_cast<double>(kClip - 1), "s/frame",
                fmt::format("a step of {} frames", kClip - 1)));
  report(single(fmt::format("cost.{}.memory", subject.name), 1e-9 * bytes, "GB",
                fmt::format("tensors at the peak of that step: parameters, gradients, moments, {} frames", kClip - 1)));
}

// The median of some frames at that age; the first, which is counted, warms up.
void bench_generation(const BenchModel& subject, int64_t age, const Report& report) {
  report(single(fmt::format("cost.{}.gflops.{}", subject.name, age), 1e-9 * flops_after(subject, age), "GFLOPs",
                fmt::format("forward, one frame after {}", age)));
  const Generator next = make_generator(subject, state_after(subject, age));
  std::vector<double> times;
  for (double spent = 0; spent < kGenerateMilliseconds && times.size() < kMostFrames; spent += times.back()) {
    times.push_back(milliseconds(next));
  }
  report(per_second(single(fmt::format("cost.{}.generate.{}", subject.name, age), quantile(times, 0.5), "ms",
                           fmt::format("after {} frames", age)),
                    1, "frames/s"));
}

}  // namespace

void bench_cost(const Settings& settings, const Report& report) {
  size_t number = 0;
  for (const std::string& name : paper_names()) {
    ++number;
    if (!settings.wants(name)) continue;
    log_info("cost: {}, {} of {}", display_name(name), number, paper_names().size());
    const BenchModel subject = make_bench_model("paper", name);
    report(single(fmt::format("cost.{}.parameters", name),
                  1e-6 * static_cast<double>(models::parameter_count(*subject.model)), "million"));
    report(single(fmt::format("cost.{}.gflops", name),
                  1e-9 * static_cast<double>(models::flops_per_frame(*subject.model, subject.format)), "GFLOPs",
                  "forward, one frame after two"));
    if (!name.ends_with("_recompute")) bench_training(subject, report);  // it trains as the other
    for (const int64_t age : kAges) bench_generation(subject, age, report);
  }
}

}  // namespace convssm::bench
