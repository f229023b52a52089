// The codes of a frame wait in the state.
#include "convssm/models/codes/code_predictor.h"

#include <ATen/ATen.h>

#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {
CodePredictor::CodePredictor(const CodeOptions& options)
    : CodeModel(options, Stream(options.seed, "code predictor")), options_(options) {
  const Stream stream(options.seed, "code predictor");
  const data::CodeFormat grid = codes_.format();
  const cores::FrameShape latent = latent_shape(grid, options.encoder);
  encoder_ = register_module("encoder", nn::Encoder(codes_.features(), options.encoder, stream.split("encoder")));
  dynamics_ = Dynamics(*this, options.core, options.actions, latent, stream);
  decoder_ = register_module(
      "decoder", nn::Decoder(dynamics_.out_channels(), grid.count, options.decoder, stream.split("decoder")));
}

namespace {

std::string obstacle_of(const MaskingOptions& masking) {
  if (masking.drop_loss > 0) return "the frames that count are drawn for whole clips; expected drop_loss: 0";
  return masking.causal() ? "causal_masking is defined on whole clips" : "";
}

}  // namespace

std::string CodePredictor::obstacle_to_chunks() const {
  const std::string masks = obstacle_of(options_.masking);
  return masks.empty() ? dynamics_.obstacle_to_chunks() : masks;
}

std::string CodePredictor::obstacle_to_carrying() const {
  const std::string masks = obstacle_of(options_.masking);
  return masks.empty() ? dynamics_.obstacle_to_carrying() : masks;
}

at::Tensor CodePredictor::features_of(const at::Tensor& codes) { return encoder_(codes_.embed(codes)); }

LossOutput CodePredictor::loss(const Clips& clips, const LossContext& context, const State& start) {
  const int64_t predictions = std::max<int64_t>(clips.frames() - 1, 1);
  return loss_of(clips, draw_choices(options_.masking, predictions, context.random), start);
}

LossOutput CodePredictor::loss_of(const Clips& clips, const Choices& choices, const State& start) {
  const MaskingOptions& masking = options_.masking;
  dynamics_.actions().check("loss", clips.actions);
  const int64_t B = clips.batch(), L = clips.frames() - 1;
  ops::require("loss", L > 0, "a clip needs at least 2 frames (train.frames), one to see and one to predict, got {}",
               clips.frames());
  const at::Tensor codes = time_first(codes_.codes_of("loss", clips));  // [T*B,h,w]
  const at::Tensor seen = clips.inputs.defined() ? time_first(clips.inputs) : codes;
  const at::Tensor blind = blind_rows(clips.actions, B).to(codes.device());
  const at::Tensor features = hide_frames(features_of(seen.slice(0, 0, L * B)), B, masking, blind);
  auto out = dynamics_.run(features, B, slice_actions(clips.actions, 1, L + 1), core_state(start),
                           slice_timing(clips.timing, 0, L));

  const auto counted = [&](const at::Tensor& x) { return chosen_frames(x, B, choices.frames); };
  const at::Tensor logits = decoder_(counted(out.y.flatten(0, 1))), labels = counted(codes.slice(0, B));
  const at::Tensor each = cross_entropy(logits, labels, options_.label_smoothing).sum({1, 2}).view({-1, B});
  const at::Tensor weights = frame_weights(choices.frames, masking.context, blind).to(each.scalar_type());
  at::Tensor total = (each * weights).sum();
  if (masking.causal() && masking.like_reference) {
    const data::CodeFormat grid = codes_.format();
    total = total + label_entropy(grid.count, options_.label_smoothing) * static_cast<double>(grid.height * grid.width);
  }
  const at::Tensor per_code = each.detach().mean() / static_cast<double>(codes.size(1) * codes.size(2));
  return {total, {{"cross_entropy", total.detach()}, {"nats_per_code", per_code}}, make_state(out.state)};
}

at::Tensor CodePredictor::forecasts(const Clips& clips, const at::Tensor& coming, const State& start) {
  at::NoGradGuard no_grad;
  ops::require("forecasts", clips.codes.defined() && !clips.video.defined(),
               "a model of codes forecasts codes (train.self_feed): it needs clips that are encoded, see convssm data "
               "encode, got frames");
  const int64_t B = clips.batch(), T = clips.frames();
  const at::Tensor codes = time_first(codes_.codes_of("forecasts", clips));
  const at::Tensor blind = blind_rows(coming, B).to(codes.device());
  const at::Tensor features = hide_frames(features_of(codes), B, options_.masking, blind);
  std::vector<at::Tensor> likely;  // what the decoder says of all codes is the largest of all
  State state = core_state(start);
  for (int64_t k = 0; k < T; k += kFramesAtOnce) {
    const int64_t end = std::min(k + kFramesAtOnce, T);
    auto out = dynamics_.run(features.slice(0, k * B, end * B), B, slice_actions(coming, k, end), state,
                             slice_timing(clips.timing, k, end));
    state = std::move(out.state);
    likely.push_back(decoder_(out.y.flatten(0, 1)).argmax(1));
  }
  return at::cat(likely).unflatten(0, {-1, B}).transpose(0, 1);
}

State CodePredictor::after(const State& core, const at::Tensor& codes, bool forecast, const Place& place,
                           const ssm::Timing& timing) const {
  State state = make_state(core, kCodes, codes, forecast, timing);
  set_place(state, place);
  return state;
}

State CodePredictor::start(const Clips& context, const Seeds& seeds) {
  at::NoGradGuard no_grad;
  dynamics_.actions().check("start", context.actions);
  ops::require("start", context.frames() > 0, "a context needs at least 1 frame, got 0");
  const int64_t B = context.batch(), known = context.frames() - 1;
  const at::Tensor codes = codes_.codes_of("start", context);
  State inner;
  for (int64_t k = 0; k < known; k += kFramesAtOnce) {
    const int64_t end = std::min(k + kFramesAtOnce, known);
    inner = dynamics_
                .run(features_of(time_first(codes.slice(1, k, end))), B, slice_actions(context.actions, k + 1, end + 1),
                     inner, slice_timing(context.timing, k, end))
                .state;
  }
  return after(inner, last_frame(codes), false, first_place(seeds, B, known, codes.device()),
               last_time(context.timing));
}

at::Tensor CodePredictor::waiting_codes(const State& state) const {
  at::Tensor codes = codes_.waiting(state, kCodes);
  place_of(state, codes.size(0));
  return codes;
}

int64_t CodePredictor::clips_in(const State& state) const { return waiting_codes(state).size(0); }

State CodePredictor::observe(const State& state, const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  const at::Tensor waiting = waiting_codes(state);
  const ssm::Timing timing = waiting_timing(state, waiting.size(0));
  State inner = core_state(state);
  Place place = place_of(state, waiting.size(0));
  if (!forecast_waits(state)) {
    inner = dynamics_.step(features_of(waiting), action, inner, timing).state;
    place.number = place.number + 1;
  }
  const at::Tensor codes = codes_.codes_of("observe", {frame.unsqueeze(1)}).squeeze(1);
  ops::require_shape("observe", "codes of the frame", codes, waiting.sizes());
  return after(inner, codes, false, place, {{}, {}, timing.step_rescale});
}

CodePredictor::Drawn CodePredictor::draw(at::Tensor& random, const at::Tensor& y) {
  const at::Tensor logits = decoder_(y);
  return {draw_codes(random, logits, options_.sampling), sound_rows(logits), {}};
}

State CodePredictor::after_draw(const State& core, const Drawn& drawn, const at::Tensor&, const Place& place,
                                double step_rescale) const {
  return after(core, drawn.codes, true, place, {{}, {}, step_rescale});
}

std::string CodePredictor::description() const {
  const data::CodeFormat grid = codes_.format();
  return fmt::format("code predictor, {} core, {} x {} of {} codes, {:.2f}M parameters{}",
                     options_.core.value("name", "?"), grid.height, grid.width, grid.count,
                     static_cast<double>(learned_count(*this)) * 1e-6,
                     codes_.has_frames() ? " beside its tokenizer" : "");
}

}  // namespace convssm::models
