// How TECO forecasts. A latent waits in the state, and beside it the codes of its frame: the posterior of a true frame after it
// is one of the pair. Drawn latents go on as they are drawn; frames are not encoded again.
#include <ATen/ATen.h>

#include "convssm/models/teco/teco.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr const char *kLatent = "latent", *kCodesBefore = "codes_before";

}  // namespace

State Teco::after(const State& core, const at::Tensor& latent, const at::Tensor& codes, bool forecast,
                  const Place& place, const ssm::Timing& timing) const {
  State state = make_state(core, kLatent, latent, forecast, timing);
  state.set(kCodes, codes);
  set_place(state, place);
  return state;
}

at::Tensor Teco::waiting_latent(const State& state) const {
  const at::Tensor latent = waiting_value(state, kLatent, {options_.features, height_, width_}, at::kFloat);
  const at::Tensor codes = codes_.waiting(state, kCodes);
  const at::Tensor before = forecast_waits(state) ? codes_.waiting(state, kCodesBefore) : codes;
  const int64_t B = latent.size(0);
  place_of(state, B);
  if (codes.size(0) == B && before.size(0) == B) return latent;
  fail(ErrorKind::data, "the state must hold codes for the {} clips of its latents", B);
}

State Teco::start(const Clips& context, const Seeds& seeds) {
  at::NoGradGuard no_grad;
  dynamics_.actions().check("start", context.actions);
  ops::require("start", context.frames() > 0, "a context needs at least 1 frame, got 0");
  const int64_t B = context.batch(), K = context.frames(), known = K - 1;
  const at::Tensor codes = codes_.codes_of("start", context);
  State inner;
  at::Tensor before = first_before(B), latent;
  for (int64_t k = 0; k < K; k += kFramesAtOnce) {
    const int64_t end = std::min(k + kFramesAtOnce, K), last = std::min(end, known);
    const at::Tensor now = codes_.embed(time_first(codes.slice(1, k, end)));
    const Latents found = posterior(at::cat({before, now.slice(0, 0, (end - k - 1) * B)}), now);
    const at::Tensor latents = k == 0 ? at::cat({found.z.slice(0, 0, B), found.zq.slice(0, B)}) : found.zq;
    before = now.slice(0, (end - k - 1) * B);
    latent = latents.slice(0, (end - k - 1) * B);
    if (last <= k) break;
    inner = dynamics_
                .run(latents.slice(0, 0, (last - k) * B), B, slice_actions(context.actions, k + 1, last + 1), inner,
                     slice_timing(context.timing, k, last))
                .state;
  }
  return after(inner, latent.clone(), last_frame(codes), false, first_place(seeds, B, known, codes.device()),
               last_time(context.timing));
}

State Teco::observe(const State& state, const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  const at::Tensor latent = waiting_latent(state), waiting = state.get(kCodes);
  const ssm::Timing timing = waiting_timing(state, latent.size(0));
  const bool replaces = forecast_waits(state);
  State inner = core_state(state);
  Place place = place_of(state, latent.size(0));
  if (!replaces) {
    inner = dynamics_.step(latent, action, inner, timing).state;
    place.number = place.number + 1;
  }
  const at::Tensor codes = codes_.codes_of("observe", {frame.unsqueeze(1)}).squeeze(1);
  ops::require_shape("observe", "codes of the frame", codes, waiting.sizes());
  // The frame before the one that is replaced: forecasts remember it.
  const at::Tensor before = replaces ? state.get(kCodesBefore) : waiting;
  const at::Tensor zq = posterior(codes_.embed(before), codes_.embed(codes)).zq;
  return after(inner, zq, codes, false, place, {{}, {}, timing.step_rescale});
}

Teco::Drawn Teco::draw(at::Tensor& random, const at::Tensor& deter) {
  const int64_t B = deter.size(0), n = height_ * width_;
  const auto logits = [&](const at::Tensor& tokens, const at::Tensor& places) {
    const at::Tensor all = prior_(tokens.view({B, height_, width_}), deter);  // [B,K,h,w]
    const at::Tensor rows = all.permute({0, 2, 3, 1}).reshape({B, n, -1});
    return rows.gather(1, places.unsqueeze(2).expand({-1, -1, rows.size(2)}));
  };
  const at::Tensor tokens = draft_and_revise(random, n, prior_->hidden_token(), options_.draft, logits);
  const at::Tensor latent = latent_of(tokens.view({B, height_, width_}));
  const at::Tensor said = decoder_(at::cat({deter, latent}, 1));
  return {said.argmax(1), sound_rows(said), latent};
}

State Teco::after_draw(const State& core, const Drawn& drawn, const at::Tensor& before, const Place& place,
                       double step_rescale) const {
  State next = after(core, drawn.latent, drawn.codes, true, place, {{}, {}, step_rescale});
  next.set(kCodesBefore, before);
  return next;
}

}  // namespace convssm::models
