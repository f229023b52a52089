// How FitVid forecasts: a latent of the prior, a hidden of the predictor, a frame of the decoder, which is shown the newest true
// frame; the encoder then sees the frame that was made. States are of one size however long the future.
//   prior.h<i> prior.c<i> predictor.h<i> predictor.c<i>  [B,size]   LSTM states after the last frame
//   hidden  [B,g]  of the last frame            skip<i>  [B,C,H,W]  what the encoder's blocks gave of the newest true frame
//   random  [B,2]  seed and number of frames so far: numbers are a function of both, so a true frame that takes the place of its
//                  forecast leaves the future that it would have had
//   forecast_waits     there if the last frame is a forecast, which a true one replaces
// Running statistics throughout, in training mode too: a future does not depend on the batch.
#include <ATen/ATen.h>

#include "convssm/models/clip_random.h"
#include "convssm/models/dynamics.h"
#include "convssm/models/fitvid/fitvid.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr const char *kHidden = "hidden", *kNumbered = "random";
constexpr auto kKept = fitvid::Statistics::running;
constexpr int64_t kSeenAtOnce = 16;  // frames of a clip through the encoder

// Two draws for each frame.
constexpr int64_t kDraws = 2, kLatentDraw = 0, kCodesDraw = 1;

at::Tensor draw_of(const at::Tensor& random, int64_t which) {
  at::Tensor position = random.clone();
  position.select(1, 1).mul_(kDraws).add_(which);
  return position;
}

std::string skip_name(size_t i) { return "skip" + std::to_string(i); }

}  // namespace

struct FitVid::Now {
  fitvid::CellStates prior, predictor;
  at::Tensor hidden, random;
  fitvid::Skips skips;
  bool forecast = false;
};

at::Tensor FitVid::latent_noise(const at::Tensor& random) const {
  at::Tensor position = draw_of(random, kLatentDraw);
  return draw_normal(position, {options_.latent});
}

FitVid::Now FitVid::now_of(const State& state) const {
  Now now;
  now.hidden = waiting_value(state, kHidden, {options_.coder.hidden}, at::kFloat);
  const int64_t B = now.hidden.size(0);
  const auto value = [&](const std::string& name, at::IntArrayRef sizes, at::ScalarType type) {
    const at::Tensor x = waiting_value(state, name.c_str(), sizes, type);
    if (x.size(0) != B) fail(ErrorKind::data, "the state must hold {} for its {} clips, got {}", name, B, x.size(0));
    return x;
  };
  const auto cells = [&](const std::string& name, fitvid::CellStates zeros) {
    for (size_t i = 0; i < zeros.size(); ++i) {
      const std::string number = std::to_string(i);
      zeros[i] = {value(name + ".h" + number, {options_.memory}, at::kFloat),
                  value(name + ".c" + number, {options_.memory}, at::kFloat)};
    }
    return zeros;
  };
  if (prior_) now.prior = cells("prior", prior_->memory->zeros(0, now.hidden.options()));
  now.predictor = cells("predictor", predictor_->memory->zeros(0, now.hidden.options()));
  const auto shapes = fitvid::skip_shapes(options_.coder, frames_->frames());
  for (size_t i = 0; i < shapes.size(); ++i) now.skips.push_back(value(skip_name(i), shapes[i], at::kFloat));
  now.random = value(kNumbered, {2}, at::kLong);
  now.forecast = forecast_waits(state);
  return now;
}

State FitVid::state_of(const Now& now) const {
  State state;
  for (const auto& [name, cells] : {std::pair{"prior", &now.prior}, std::pair{"predictor", &now.predictor}}) {
    for (size_t i = 0; i < cells->size(); ++i) {
      state.set(std::string(name) + ".h" + std::to_string(i), (*cells)[i].h);
      state.set(std::string(name) + ".c" + std::to_string(i), (*cells)[i].c);
    }
  }
  state.set(kHidden, now.hidden);
  for (size_t i = 0; i < now.skips.size(); ++i) state.set(skip_name(i), now.skips[i]);
  state.set(kNumbered, now.random);
  if (now.forecast) state.set(kForecastWaits, at::ones({1}));
  return state;
}

at::Tensor FitVid::step(Now& now, const at::Tensor& action) {
  const at::Tensor before = now.hidden.unsqueeze(0);
  at::Tensor z;
  if (prior_) {
    const at::Tensor noise = latent_noise(now.random).to(before.options());
    z = prior_(before, now.prior).sample(noise.unsqueeze(0));
  }
  const at::Tensor predicted = predictor_(step_input(before, action, z), now.predictor)[0];
  now.random = now.random.clone();
  now.random.select(1, 1).add_(1);
  return predicted;
}

void FitVid::show(Now& now, const fitvid::Encoded& encoded) const {
  now.hidden = encoded.hidden;
  now.skips = encoded.skips;
  now.forecast = false;
}

State FitVid::start(const Clips& context, const Seeds& seeds) {
  at::NoGradGuard no_grad;
  check("start", context);
  const at::Tensor inputs = frames_->inputs_of("start", context);
  const int64_t B = context.batch(), K = context.frames();
  Now now;
  for (int64_t k = 0; k < K; k += kSeenAtOnce) {
    const int64_t end = std::min(k + kSeenAtOnce, K), last = (end - 1 - k) * B;
    const fitvid::Encoded seen = encoder_(frames_->seen(time_first(inputs.slice(1, k, end))), kKept);
    if (k == 0) {
      const at::TensorOptions like = seen.hidden.options();
      if (prior_) now.prior = prior_->memory->zeros(B, like);
      now.predictor = predictor_->memory->zeros(B, like);
      now.random = first_position(seeds, B).to(like.device());
      now.random.select(1, 1).add_(1);
    }
    for (int64_t t = k; t < end; ++t) {
      if (t > 0) step(now, context.actions.defined() ? context.actions.select(1, t) : at::Tensor());
      now.hidden = seen.hidden.slice(0, (t - k) * B, (t - k + 1) * B);
    }
    fitvid::Encoded newest{now.hidden.clone(), {}};
    for (const at::Tensor& skip : seen.skips) newest.skips.push_back(skip.slice(0, last, last + B).clone());
    show(now, newest);
  }
  return state_of(now);
}

Forecast FitVid::next(const State& state, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  ops::require("next", !state.empty(), "the state is empty; start() makes one from a context");
  Now now = now_of(state);
  const at::Tensor codes_position = draw_of(now.random, kCodesDraw), predicted = step(now, action);
  const fitvid::MadeFrame made = frames_->make(decoder_->forward(predicted, now.skips, {}, kKept), codes_position);
  now.hidden = encoder_(made.seen, kKept).hidden;
  now.forecast = true;
  return {made.frame, state_of(now)};
}

State FitVid::observe(const State& state, const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  Now now = now_of(state);
  ops::require_dims("observe", "frame", frame, 4, "[B,C,H,W]");
  ops::require("observe", frame.size(0) == now.hidden.size(0), "expected a frame for each of {} clips, got {}",
               now.hidden.size(0), frame.size(0));
  if (!now.forecast) step(now, action);
  show(now, encoder_(frames_->seen(frames_->inputs_of("observe", {frame.unsqueeze(1)}).squeeze(1)), kKept));
  return state_of(now);
}

int64_t FitVid::clips_in(const State& state) const { return now_of(state).hidden.size(0); }

}  // namespace convssm::models
