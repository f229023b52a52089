// How CW-VAE forecasts. A state holds the window of the top level that is under way: where its levels began, and what was seen of
// its frames. A true frame changes what the slow levels make of the whole window, so the window is run again up to it: at most
// factor^(levels-1) frames, of features that are kept. The state is of one size however long the future.
//   begin.z<l> begin.h<l>   [B,s] [B,d]  before the window         now.z<l> now.h<l>   after the last frame
//   features  [B,W,E]  of frames that were seen     seen  [W] 0 or 1     actions  [B,W,A], embedded, if there are any
//   random    [B,2]    seeds, and the number of frames so far: noise is a function of both (Cwvae::tick_noise)
//   forecast_waits     there if the last frame is a forecast, which a true one replaces
#include <ATen/ATen.h>

#include "convssm/models/clip_random.h"
#include "convssm/models/cwvae/cwvae.h"
#include "convssm/models/dynamics.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr const char *kFeatures = "features", *kSeen = "seen", *kActions = "actions", *kRandom = "random";

std::string cell_name(const char* when, const char* what, size_t level) {
  return std::string(when) + "." + what + std::to_string(level);
}

}  // namespace

struct Cwvae::Window {
  std::vector<cwvae::CellState> begin, now;
  at::Tensor features, actions;  // [B,W,..]
  std::vector<bool> seen;        // W
  at::Tensor random;
  int64_t number = 0;  // of frames so far
  bool forecast = false;
};

at::Tensor Cwvae::tick_noise(const at::Tensor& random, int64_t level, int64_t frame) const {
  at::Tensor position = random.clone();
  position.select(1, 1).fill_(frame * options_.hierarchy.levels + level);
  return draw_normal(position, {options_.hierarchy.stochastic});
}

cwvae::TickNoise Cwvae::noise_from(const at::Tensor& random, int64_t first) const {
  return [this, random, first](int64_t level, int64_t tick) {
    if (options_.mean_only) return at::Tensor();
    return tick_noise(random, level, first + tick * options_.hierarchy.frames_of(level));
  };
}

Cwvae::Window Cwvae::window_of(const State& state) const {
  const cwvae::HierarchyOptions& o = options_.hierarchy;
  const int64_t W = o.window(), A = action_input_.features();
  Window w;
  w.features = waiting_value(state, kFeatures, {W, frames_->features()}, at::kFloat);
  const int64_t B = w.features.size(0);
  const auto value = [&](const std::string& name, at::IntArrayRef sizes, at::ScalarType type) {
    const at::Tensor x = waiting_value(state, name.c_str(), sizes, type);
    if (x.size(0) != B) fail(ErrorKind::data, "the state must hold {} for its {} clips, got {}", name, B, x.size(0));
    return x;
  };
  for (size_t l = 0; l < static_cast<size_t>(o.levels); ++l) {
    for (auto [when, cells] : {std::pair{"begin", &w.begin}, std::pair{"now", &w.now}}) {
      cells->push_back({value(cell_name(when, "z", l), {o.stochastic}, at::kFloat),
                        value(cell_name(when, "h", l), {o.deterministic}, at::kFloat)});
    }
  }
  if (A > 0) w.actions = value(kActions, {W, A}, at::kFloat);
  w.random = value(kRandom, {2}, at::kLong);
  const at::Tensor numbers = w.random.select(1, 1).cpu(), seen = state.get(kSeen).cpu();
  w.number = numbers[0].item<int64_t>();
  if (w.number < 1 || !(numbers == w.number).all().item<bool>())
    fail(ErrorKind::data, "the clips of the state must have the same number of frames before them, at least 1");
  if (seen.dim() != 1 || seen.size(0) != W || seen.scalar_type() != at::kLong)
    fail(ErrorKind::data, "the {} of the state must be int64 [{}], got {}", kSeen, W, ops::shape_text(seen.sizes()));
  for (int64_t i = 0; i < W; ++i) w.seen.push_back(seen[i].item<int64_t>() != 0);
  w.forecast = forecast_waits(state);
  return w;
}

State Cwvae::state_of(const Window& w) const {
  State state;
  for (size_t l = 0; l < w.now.size(); ++l) {
    for (const auto& [when, cells] : {std::pair{"begin", &w.begin}, std::pair{"now", &w.now}}) {
      state.set(cell_name(when, "z", l), (*cells)[l].z);
      state.set(cell_name(when, "h", l), (*cells)[l].h);
    }
  }
  state.set(kFeatures, w.features);
  if (w.actions.defined()) state.set(kActions, w.actions);
  at::Tensor seen = at::empty({static_cast<int64_t>(w.seen.size())}, at::kLong);
  for (size_t i = 0; i < w.seen.size(); ++i) seen.data_ptr<int64_t>()[i] = w.seen[i] ? 1 : 0;
  state.set(kSeen, seen.to(w.features.device()));
  at::Tensor random = w.random.clone();
  random.select(1, 1).fill_(w.number);
  state.set(kRandom, random);
  if (w.forecast) state.set(kForecastWaits, at::ones({1}));
  return state;
}

void Cwvae::begin_window(Window& w) const {
  w.begin = w.now;
  w.features = at::zeros_like(w.features);
  if (w.actions.defined()) w.actions = at::zeros_like(w.actions);
  w.seen.assign(w.seen.size(), false);
}

// From the beginning of the window to its last frame.
void Cwvae::replay(Window& w) {
  const int64_t W = options_.hierarchy.window(), last = (w.number - 1) % W, first = w.number - 1 - last;
  const auto part = [&](const at::Tensor& x) { return x.defined() ? x.slice(1, 0, last + 1).transpose(0, 1) : x; };
  const std::vector<bool> seen(w.seen.begin(), w.seen.begin() + last + 1);
  const auto runs =
      hierarchy_->run(part(w.features), seen, part(w.actions), noise_from(w.random, first), w.begin, false);
  for (size_t l = 0; l < runs.size(); ++l) w.now[l] = runs[l].last;
}

State Cwvae::start(const Clips& context, const Seeds& seeds) {
  at::NoGradGuard no_grad;
  check("start", context);
  const at::Tensor inputs = frames_->inputs_of("start", context);
  const int64_t B = context.batch(), K = context.frames(), W = options_.hierarchy.window();
  Window w;
  w.seen.assign(static_cast<size_t>(W), false);
  for (int64_t k = 0; k < K; k += W) {
    const int64_t end = std::min(k + W, K);
    const at::Tensor features = features_of(inputs.slice(1, k, end)).transpose(0, 1);
    if (k == 0) {
      w.random = first_position(seeds, B).to(features.device());
      w.features = at::zeros({B, W, features.size(2)}, features.options());
      if (action_input_.features() > 0) w.actions = at::zeros({B, W, action_input_.features()}, features.options());
      w.now = hierarchy_->zeros(B, features.options());
    }
    begin_window(w);
    w.features.slice(1, 0, end - k).copy_(features);
    if (w.actions.defined()) {
      const at::Tensor given = slice_actions(context.actions, k, end);
      w.actions.slice(1, 0, end - k).copy_(embedded_clip(given, end - k, B).transpose(0, 1));
    }
    std::fill_n(w.seen.begin(), end - k, true);
    w.number = end;
    replay(w);
  }
  return state_of(w);
}

Forecast Cwvae::next(const State& state, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  ops::require("next", !state.empty(), "the state is empty; start() makes one from a context");
  Window w = window_of(state);
  const int64_t place = w.number % options_.hierarchy.window();
  if (place == 0) begin_window(w);
  const at::Tensor row = embedded(action, w.features.size(0));
  if (row.defined()) {
    w.actions = w.actions.clone();
    w.actions.select(1, place).copy_(row);
  }
  w.now = hierarchy_->step(w.now, place, row, noise_from(w.random, w.number - place));
  ++w.number;
  w.forecast = true;
  return {frames_->frames_of(outputs(w.now[0].z, w.now[0].h)), state_of(w)};
}

State Cwvae::observe(const State& state, const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  Window w = window_of(state);
  ops::require_dims("observe", "frame", frame, 4, "[B,C,H,W]");
  ops::require("observe", frame.size(0) == w.features.size(0), "expected a frame for each of {} clips, got {}",
               w.features.size(0), frame.size(0));
  const int64_t W = options_.hierarchy.window(), number = w.forecast ? w.number - 1 : w.number, place = number % W;
  if (!w.forecast && place == 0) begin_window(w);
  w.features = w.features.clone();
  w.features.select(1, place).copy_(features_of(frames_->inputs_of("observe", {frame.unsqueeze(1)}))[0]);
  if (!w.forecast && w.actions.defined()) {
    w.actions = w.actions.clone();
    w.actions.select(1, place).copy_(embedded(action, frame.size(0)));
  }
  w.seen[static_cast<size_t>(place)] = true;
  w.number = number + 1;
  w.forecast = false;
  replay(w);
  return state_of(w);
}

int64_t Cwvae::clips_in(const State& state) const { return window_of(state).features.size(0); }

}  // namespace convssm::models
