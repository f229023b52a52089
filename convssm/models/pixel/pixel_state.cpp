// Names of the pixel predictor's state. States come from files too: what is not as it must be is an error, not a crash.
#include "convssm/models/pixel/pixel_state.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "convssm/base/error.h"
#include "convssm/ops/check.h"

namespace convssm::models::pixel {
namespace {

bool has(const State& state, const char* name) {
  const auto& items = state.items();
  return std::any_of(items.begin(), items.end(), [&](const auto& item) { return item.first == name; });
}

// Undefined if there is none.
at::Tensor row(const State& state, const char* name, int64_t size) {
  if (!has(state, name)) return {};
  const at::Tensor values = state.get(name);
  if (values.dim() == 1 && values.size(0) == size) return values;
  fail(ErrorKind::data, "the {} of the state must be [{}], got {}", name, size, ops::shape_text(values.sizes()));
}

}  // namespace

State core_state(const State& state) {
  State inner;
  const std::string prefix = kCorePrefix;
  for (const auto& [name, value] : state.items()) {
    if (name.starts_with(prefix)) inner.set(name.substr(prefix.size()), value);
  }
  return inner;
}

State make_state(const State& core, const at::Tensor& frame, bool waits, const ssm::Timing& of_frame) {
  State outer;
  for (const auto& [name, value] : core.items()) outer.set(kCorePrefix + name, value);
  if (frame.defined()) outer.set(kFrame, frame);
  if (waits) outer.set(kForecastWaits, at::ones({1}));
  if (of_frame.dt.defined()) outer.set(kDt, of_frame.dt);
  if (of_frame.resets.defined()) outer.set(kResets, of_frame.resets);
  if (of_frame.step_rescale != 1) outer.set(kStepRescale, at::full({1}, of_frame.step_rescale, at::kDouble));
  return outer;
}

bool forecast_waits(const State& state) { return has(state, kForecastWaits); }

at::Tensor waiting_frame(const State& state, int64_t channels, int64_t height, int64_t width) {
  if (!has(state, kFrame)) fail(ErrorKind::data, "the state holds no frame to go on from; start from a context");
  const at::Tensor frame = state.get(kFrame);
  const bool fits = frame.dim() == 4 && frame.size(0) > 0 && frame.size(1) == channels && frame.size(2) == height &&
                    frame.size(3) == width && frame.is_floating_point();
  if (fits) return frame;
  fail(ErrorKind::data,
       "the state must hold frames of [B,{},{},{}] for at least one clip, the frames of this model, got {}", channels,
       height, width, ops::shape_text(frame.sizes()));
}

ssm::Timing waiting_timing(const State& state, int64_t clips) {
  ssm::Timing timing{row(state, kDt, clips), row(state, kResets, clips)};
  if (const at::Tensor rescale = row(state, kStepRescale, 1); rescale.defined()) {
    timing.step_rescale = rescale.item<double>();
  }
  return timing;
}

}  // namespace convssm::models::pixel
