// How Latent FDM forecasts. A state holds the frames that a later draw may look at, and those that were drawn ahead and wait:
//   frames   [B,N,C,h,w]   latents      numbers  [N]  of these frames, counted from the beginning of the context, ascending
//   actions  [B,N] or [B,N,A], those that led to them, if the model takes any; masked where none was told
//   random   [B,2]  seeds, and the number of frames that were taken in or given; frames from this number on wait
//   begin    [1]    that number when the last true frame came, or the last hierarchy began
//   forecast_waits  there if the last frame is a forecast, which a true one replaces
// Noise is a function of the seed, the frame's number and the step, so nothing depends on when a frame was drawn.
#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "convssm/models/clip_random.h"
#include "convssm/models/latent_fdm/latent_fdm.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr const char *kFdmFrames = "frames", *kFdmNumbers = "numbers", *kFdmActions = "actions", *kFdmRandom = "random",
                     *kFdmBegin = "begin";

bool same_actions(const at::Tensor& a, const at::Tensor& b) {
  return (a.eq(b) | (a.ne(a) & b.ne(b))).all().item<bool>();  // NaN is masked
}

at::Tensor numbers_tensor(const latent_fdm::FrameNumbers& numbers, at::Device device) {
  return at::tensor(numbers, at::kLong).to(device);
}

}  // namespace

struct LatentFdm::Window {
  latent_fdm::FrameNumbers numbers;
  at::Tensor frames, actions;  // [B,N,...]
  at::Tensor random;
  int64_t number = 0, begin = 0;
  bool forecast = false;

  int64_t clips() const { return frames.size(0); }
  bool has(int64_t frame) const { return std::ranges::binary_search(numbers, frame); }
  int64_t place(int64_t frame) const { return std::ranges::lower_bound(numbers, frame) - numbers.begin(); }

  // Those of these places, ascending.
  void keep(const std::vector<int64_t>& places) {
    latent_fdm::FrameNumbers kept;
    for (const int64_t i : places) kept.push_back(numbers[static_cast<size_t>(i)]);
    const at::Tensor rows = numbers_tensor(places, frames.device());
    frames = frames.index_select(1, rows);
    if (actions.defined()) actions = actions.index_select(1, rows);
    numbers = std::move(kept);
  }

  void add(const latent_fdm::FrameNumbers& more, const at::Tensor& latents, const at::Tensor& their_actions) {
    numbers.insert(numbers.end(), more.begin(), more.end());
    frames = at::cat({frames, latents}, 1);
    if (actions.defined()) actions = at::cat({actions, their_actions}, 1);
    std::vector<int64_t> order(numbers.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int64_t i) { return numbers[static_cast<size_t>(i)]; });
    if (!std::ranges::is_sorted(order)) keep(order);
  }
};

at::Tensor LatentFdm::frame_noise(const at::Tensor& random, int64_t frame, int64_t step) const {
  const latent_fdm::DenoiserOptions& o = options_.denoiser;
  at::Tensor position = random.clone();
  position.select(1, 1).fill_(frame * (options_.diffusion.steps + 1) + step);
  return draw_normal(position, {o.frame_channels, o.height, o.width});
}

latent_fdm::SchemeOptions LatentFdm::scheme() const {
  latent_fdm::SchemeOptions scheme = options_.scheme;
  scheme.horizon = options_.horizon > 0 ? options_.horizon : clip_frames_.item<int64_t>();
  ops::require(
      "next", scheme.scheme != latent_fdm::Scheme::hierarchy || scheme.horizon > 1,
      "hierarchy-2 needs a horizon, the frames of context and future: set model.sampling.horizon (this model was "
      "not trained, whose clips would give one)");
  return scheme;
}

LatentFdm::Window LatentFdm::window_of(const State& state) const {
  ops::require("next", !state.empty(), "the state is empty; start() makes one from a context");
  const latent_fdm::DenoiserOptions& o = options_.denoiser;
  const auto whole = [&](const char* name) {
    const at::Tensor x = waiting_value(state, name, {}, at::kLong).cpu().contiguous();
    return latent_fdm::FrameNumbers(x.data_ptr<int64_t>(), x.data_ptr<int64_t>() + x.numel());
  };
  Window w;
  w.numbers = whole(kFdmNumbers);
  const int64_t N = static_cast<int64_t>(w.numbers.size());
  w.frames = waiting_value(state, kFdmFrames, {N, o.frame_channels, o.height, o.width}, at::kFloat);
  const auto of_clips = [&](const at::Tensor& x, const char* name) {
    if (x.size(0) == w.clips()) return x;
    fail(ErrorKind::data, "the state must hold {} for its {} clips, got {}", name, w.clips(), x.size(0));
  };
  w.random = of_clips(waiting_value(state, kFdmRandom, {2}, at::kLong), kFdmRandom);
  if (takes_actions()) {
    const int64_t values = action_input_.format().values;
    const std::vector<int64_t> sizes = values > 0 ? std::vector<int64_t>{N, values} : std::vector<int64_t>{N};
    w.actions = of_clips(waiting_value(state, kFdmActions, sizes, values > 0 ? at::kFloat : at::kLong), kFdmActions);
    if (values == 0) action_input_.check_below("next", w.actions);
  }
  const at::Tensor counts = w.random.select(1, 1).cpu();
  w.number = counts[0].item<int64_t>(), w.begin = whole(kFdmBegin)[0], w.forecast = forecast_waits(state);
  const bool same = counts.eq(w.number).all().item<bool>();
  const bool ascending = std::ranges::adjacent_find(w.numbers, std::ranges::greater_equal()) == w.numbers.end();
  if (!same || !ascending || w.numbers[0] < 0 || w.begin < 1 || w.begin > w.number || !w.has(w.number - 1)) {
    fail(ErrorKind::data,
         "the clips of the state must have the same number of frames before them, the last of which is there, and "
         "frames in order");
  }
  return w;
}

State LatentFdm::state_of(const Window& w) const {
  State state;
  const at::Device device = w.frames.device();
  state.set(kFdmFrames, w.frames);
  state.set(kFdmNumbers, numbers_tensor(w.numbers, device));
  if (w.actions.defined()) state.set(kFdmActions, w.actions);
  at::Tensor random = w.random.clone();
  random.select(1, 1).fill_(w.number);
  state.set(kFdmRandom, random);
  state.set(kFdmBegin, numbers_tensor({w.begin}, device));
  if (w.forecast) state.set(kForecastWaits, at::ones({1}));
  return state;
}

void LatentFdm::keep_needed(Window& w) const {
  const latent_fdm::SchemeOptions o = scheme();
  const int64_t from = w.place(latent_fdm::first_needed(o, w.number, w.begin)),
                N = static_cast<int64_t>(w.numbers.size());
  std::vector<int64_t> places;
  if (o.scheme == latent_fdm::Scheme::long_range) {  // the latest of the context
    const int64_t end = w.place(w.begin);
    for (int64_t i = std::max<int64_t>(end - (o.frames - o.drawn), 0); i < std::min(end, from); ++i)
      places.push_back(i);
  }
  for (int64_t i = from; i < N; ++i) places.push_back(i);
  if (static_cast<int64_t>(places.size()) < N) w.keep(places);
}

void LatentFdm::drop_ahead(Window& w) const {
  if (w.numbers.back() < w.number) return;
  std::vector<int64_t> given(static_cast<size_t>(w.place(w.number)));
  std::iota(given.begin(), given.end(), 0);
  w.keep(given);
}

void LatentFdm::draw_stage(Window& w, const latent_fdm::Stage& stage, const at::Tensor& known) const {
  const at::Device device = w.frames.device();
  const int64_t B = w.clips(), O = static_cast<int64_t>(stage.observed.size()),
                L = static_cast<int64_t>(stage.latent.size());
  std::vector<int64_t> places, ahead;
  for (const int64_t frame : stage.observed) places.push_back(w.place(frame));
  for (const int64_t frame : stage.latent) ahead.push_back(frame - w.number);
  const at::Tensor rows = numbers_tensor(places, device), observed = w.frames.index_select(1, rows);
  latent_fdm::NoisyFrames in;
  in.given = (at::arange(O + L, device) < O).expand({B, O + L});
  in.numbers =
      at::cat({numbers_tensor(stage.observed, device), numbers_tensor(stage.latent, device)}).expand({B, O + L});
  at::Tensor coming;
  if (takes_actions()) {
    coming = known.defined() ? known.index_select(1, numbers_tensor(ahead, device)) : masked_actions(B, L);
    in.actions = embedded(at::cat({w.actions.index_select(1, rows), coming}, 1));
  }
  const auto noise = [&](int64_t step) {
    std::vector<at::Tensor> all;
    for (const int64_t frame : stage.latent) all.push_back(frame_noise(w.random, frame, step));
    return at::stack(all, 1).to(w.frames.options());
  };
  const latent_fdm::Sampler sampler(options_.diffusion, options_.sampler);
  at::Tensor x = noise(0);
  for (int64_t i = 0; i < sampler.count(); ++i) {
    in.x = in.clean = at::cat({observed, x}, 1);
    in.steps = at::full({B}, sampler.step(i), at::kLong);
    x = sampler.back(i, x, denoiser_(in).slice(1, O), sampler.draws(i) ? noise(i + 1) : at::Tensor());
  }
  w.add(stage.latent, x, coming);
}

// Until the next frame is there. A block, and a hierarchy, ends with the last action that is known; where all are masked none is,
// and frames are drawn as they are asked for.
void LatentFdm::draw(Window& w, const at::Tensor& known) const {
  latent_fdm::SchemeOptions o = scheme();
  const bool told =
      takes_actions() && known.defined() && !same_actions(known, masked_actions(w.clips(), known.size(1)));
  if (o.scheme != latent_fdm::Scheme::hierarchy) {
    drop_ahead(w);  // what another scheme left
    draw_stage(w, latent_fdm::next_stage(o, w.numbers, w.begin, told ? known.size(1) : o.drawn),
               told ? known : at::Tensor());
    return;
  }
  if (told || w.number >= latent_fdm::hierarchy_end(o, w.begin)) drop_ahead(w);  // drawn without these actions
  if (w.numbers.back() < w.number) w.begin = w.number;
  if (told) o.until = w.number + known.size(1);
  const int64_t last = told ? latent_fdm::hierarchy_end(o, w.begin) - 1 : w.number;
  for (int64_t frame = w.number; frame <= last; ++frame) {
    while (!w.has(frame)) {
      draw_stage(w, latent_fdm::next_stage(o, w.numbers, w.begin, o.drawn), told ? known : at::Tensor());
    }
  }
}

// The next frame as a latent [B,C,h,w].
at::Tensor LatentFdm::give(Window& w, const at::Tensor& known) const {
  if (!w.has(w.number)) {
    draw(w, known);
  } else if (takes_actions()) {
    const at::Tensor drawn_with = w.actions.select(1, w.place(w.number));
    ops::require(
        "next",
        same_actions(known.defined() ? known.select(1, 0) : masked_actions(w.clips(), 1).select(1, 0), drawn_with),
        "frame {} was drawn ahead, with other actions than it is given now; hand the same ones over, or observe() "
        "the last frame, after which what was drawn ahead is drawn anew",
        w.number);
  }
  const at::Tensor latent = w.frames.select(1, w.place(w.number));
  ++w.number;
  w.forecast = true;
  return latent;
}

// [B,T,..] as they are kept: there is one masked action.
at::Tensor LatentFdm::told_actions(const char* operation, const at::Tensor& actions, int64_t B, int64_t T) const {
  if (!takes_actions()) return {};
  if (!actions.defined()) return masked_actions(B, T);
  action_input_.check(operation, actions);
  ops::require(operation, actions.size(0) == B && actions.size(1) >= T,
               "expected actions of {} clips and {} frames, got {}", B, T, ops::shape_text(actions.sizes()));
  if (actions.is_floating_point()) return at::where(actions.ne(actions).any(-1, true), NAN, actions.to(at::kFloat));
  action_input_.check_below(operation, actions);
  return actions.clamp_min(-1);
}

State LatentFdm::start(const Clips& context, const Seeds& seeds) {
  at::NoGradGuard no_grad;
  check("start", context);
  const int64_t B = context.batch(), T = context.frames(), from = latent_fdm::first_needed(scheme(), T, T);
  Window w;
  w.frames = (latents_of(context.video.slice(1, from)) * scale()).to(like());
  w.actions = told_actions("start", context.actions, B, T);
  if (w.actions.defined()) w.actions = w.actions.slice(1, from, T);
  for (int64_t t = from; t < T; ++t) w.numbers.push_back(t);
  w.random = first_position(seeds, B).to(w.frames.device());
  w.number = w.begin = T;
  return state_of(w);
}

Forecast LatentFdm::next(const State& state, const at::Tensor& action) {
  Forecast out = next_frames(state, action.defined() ? action.unsqueeze(1) : action, 1);
  out.frame = out.frame.squeeze(1);
  return out;
}

Forecast LatentFdm::next_frames(const State& state, const at::Tensor& actions, int64_t frames) {
  at::NoGradGuard no_grad;
  ops::require("next", frames > 0, "frames must be positive, got {}", frames);
  Window w = window_of(state);
  const at::Tensor known = actions.defined() ? told_actions("next", actions, w.clips(), frames) : actions;
  std::vector<at::Tensor> latents;
  for (int64_t k = 0; k < frames; ++k) {
    latents.push_back(give(w, known.defined() ? known.slice(1, k) : known));
    keep_needed(w);
  }
  return {frames_of(at::stack(latents, 1)), state_of(w)};
}

State LatentFdm::observe(const State& state, const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  Window w = window_of(state);
  ops::require_dims("observe", "frame", frame, 4, "[B,C,H,W]");
  ops::require("observe", frame.size(0) == w.clips(), "expected a frame for each of {} clips, got {}", w.clips(),
               frame.size(0));
  const Clips clip{frame.unsqueeze(1)};
  check("observe", clip);
  const int64_t number = w.forecast ? w.number - 1 : w.number;
  at::Tensor told = told_actions("observe", action.defined() ? action.unsqueeze(1) : action, w.clips(), 1);
  if (told.defined() && w.forecast) told = w.actions.narrow(1, w.place(number), 1);  // what it was forecast with
  w.number = number;
  drop_ahead(w);
  w.add({number}, (latents_of(clip.video) * scale()).to(like()), told);
  w.number = w.begin = number + 1;
  w.forecast = false;
  keep_needed(w);
  return state_of(w);
}

int64_t LatentFdm::clips_in(const State& state) const { return window_of(state).clips(); }

}  // namespace convssm::models
