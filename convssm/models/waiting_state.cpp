// States come from files too: what is not as it must be is an error, not a crash.
#include "convssm/models/waiting_state.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "convssm/base/error.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr const char *kDt = "dt", *kResets = "resets", *kStepRescale = "step_rescale";

// Undefined if there is none.
at::Tensor row(const State& state, const char* name, int64_t size) {
  if (!has(state, name)) return {};
  const at::Tensor values = state.get(name);
  if (values.dim() == 1 && values.size(0) == size) return values;
  fail(ErrorKind::data, "the {} of the state must be [{}], got {}", name, size, ops::shape_text(values.sizes()));
}

}  // namespace

bool has(const State& state, const char* name) {
  const auto& items = state.items();
  return std::any_of(items.begin(), items.end(), [&](const auto& item) { return item.first == name; });
}

State core_state(const State& state) {
  State inner;
  const std::string prefix = kCorePrefix;
  for (const auto& [name, value] : state.items()) {
    if (name.starts_with(prefix)) inner.set(name.substr(prefix.size()), value);
  }
  return inner;
}

State make_state(const State& core, const char* name, const at::Tensor& waiting, bool forecast,
                 const ssm::Timing& of_waiting) {
  State outer;
  for (const auto& [key, value] : core.items()) outer.set(kCorePrefix + key, value);
  if (waiting.defined()) outer.set(name, waiting);
  if (forecast) outer.set(kForecastWaits, at::ones({1}));
  if (of_waiting.dt.defined()) outer.set(kDt, of_waiting.dt);
  if (of_waiting.resets.defined()) outer.set(kResets, of_waiting.resets);
  if (of_waiting.step_rescale != 1) outer.set(kStepRescale, at::full({1}, of_waiting.step_rescale, at::kDouble));
  return outer;
}

State at_interval(const State& state, const at::Tensor& dt) {
  State timed = state;
  timed.set(kDt, dt);
  return timed;
}

bool forecast_waits(const State& state) { return has(state, kForecastWaits); }

at::Tensor waiting_value(const State& state, const char* name, at::IntArrayRef sizes, at::ScalarType type) {
  if (!has(state, name)) fail(ErrorKind::data, "the state holds no {} to go on from; start from a context", name);
  const at::Tensor value = state.get(name);
  const bool whole = type == at::kLong;
  const bool fits = value.dim() == static_cast<int64_t>(sizes.size()) + 1 && value.size(0) > 0 &&
                    value.sizes().slice(1) == sizes &&
                    (whole ? value.scalar_type() == at::kLong : value.is_floating_point());
  if (fits) return value;
  fail(ErrorKind::data, "the state must hold {} of [B,{}] for at least one clip, as this model has them, got {} {}",
       name, fmt::join(sizes, ","), ops::dtype_text(value), ops::shape_text(value.sizes()));
}

ssm::Timing waiting_timing(const State& state, int64_t clips) {
  ssm::Timing timing{row(state, kDt, clips), row(state, kResets, clips)};
  if (const at::Tensor rescale = row(state, kStepRescale, 1); rescale.defined()) {
    timing.step_rescale = rescale.item<double>();
  }
  return timing;
}

}  // namespace convssm::models
