// A state after many frames is made from one after two by repeating what grows (keys, values, tokens). To generate 1200
// frames first would take long, and speed does not depend on the values.
#include "bench/generator.h"

#include <ATen/ATen.h>

#include "convssm/models/forecaster.h"
#include "convssm/ops/flop_meter.h"

namespace convssm::bench {
namespace {

constexpr int64_t kCalibration = 8;  // frames
constexpr int64_t kShort = 2;        // frames of the clip; all but the last went through the core

bool is(const std::string& name, const char* part) { return name.ends_with(part); }

// The first `size` of as many copies as needed.
at::Tensor repeated(const at::Tensor& x, int64_t axis, int64_t size) {
  std::vector<int64_t> times(x.dim(), 1);
  times[axis] = (size + x.size(axis) - 1) / x.size(axis);
  return x.repeat(times).narrow(axis, 0, size).contiguous();
}

}  // namespace

std::shared_ptr<generate::Predictor> make_predictor(const BenchModel& subject, Precision precision) {
  return std::make_shared<generate::Predictor>(*subject.model, generate::PredictorOptions{.precision = precision});
}

Generator make_generator(const BenchModel& subject, const models::State& start, Precision precision) {
  at::NoGradGuard no_grad;
  const auto predictor = make_predictor(subject, precision);
  if (precision == Precision::int8) predictor->start(data::Clips{subject.clip(kCalibration)});
  predictor->start(start);
  return [model = subject.model, predictor] { return predictor->next(); };
}

models::State state_after(const BenchModel& subject, int64_t frames) {
  at::NoGradGuard no_grad;
  const models::State young = models::forecaster_of(*subject.model).start({subject.clip(kShort)}, {});
  models::State old;
  for (const auto& [name, value] : young.items()) {
    const int64_t seen = frames - 1;  // frames that went through the core; a start token comes before them
    if (is(name, ".position")) {
      old.set(name, at::scalar_tensor(value.item<int64_t>() / kShort * (seen + 1), at::kLong));
    } else if (is(name, ".k") || is(name, ".v")) {
      old.set(name, repeated(value, 2, value.size(2) / kShort * (seen + 1)));
    } else if (is(name, "core.tokens")) {
      old.set(name, repeated(value, 0, seen));
    } else {
      old.set(name, value);
    }
  }
  return old;
}

double flops_after(const BenchModel& subject, int64_t frames) {
  at::NoGradGuard no_grad;
  const models::State state = state_after(subject, frames);
  const ops::FlopMeter meter;
  models::forecaster_of(*subject.model).next(state, {});
  return static_cast<double>(meter.count());
}

}  // namespace convssm::bench
