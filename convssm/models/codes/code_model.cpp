#include "convssm/models/codes/code_model.h"

#include <ATen/ATen.h>

#include <limits>

#include "convssm/models/clip_random.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {

void CodeModelOptions::read_from(OptionReader& read) {
  SequenceOptions::read_from(read);
  codes.read_from(read);
  masking.read_from(read);
  sampling.read_from(read);
  read("label_smoothing", label_smoothing);
  ops::require("model", label_smoothing >= 0 && label_smoothing < 1, "label_smoothing must be in [0,1), got {}",
               label_smoothing);
}

CodeModel::CodeModel(const CodeModelOptions& options, const Stream& stream) : masking_(options.masking) {
  const TokenizerPart tokenizer = make_tokenizer(options.codes.tokenizer);
  if (tokenizer) register_frozen("tokenizer", tokenizer.module);
  codes_ = CodeInput(*this, options.codes, tokenizer, stream);
}

cores::FrameShape CodeModel::latent_shape(const data::CodeFormat& grid, const nn::CoderOptions& encoder) {
  const int64_t scale = encoder.scale();
  ops::require("model", grid.height % scale == 0 && grid.width % scale == 0,
               "the {} depths of the encoder halve frames of codes to a whole number of pixels, got {} x {} codes",
               encoder.depths.size(), grid.height, grid.width);
  return {encoder.depths.back(), grid.height / scale, grid.width / scale};
}

void CodeModel::check_data(const data::DataFormat& data) const {
  codes_.check_data(data);
  dynamics_.actions().check_data(data.actions);
  if (!masking_.causal() || (dynamics_.actions().format().matter() && !data.actions.none())) return;
  fail(ErrorKind::usage,
       "[model] causal_masking hides the frames of clips whose actions are known: it needs data with actions and a "
       "model "
       "that takes them (model.actions), {}. Leave causal_masking out",
       data.actions.none() ? "the data has none" : "this model takes none");
}

at::Tensor CodeModel::last_frame(const at::Tensor& x) { return x.defined() ? x.select(1, x.size(1) - 1).clone() : x; }

ssm::Timing CodeModel::last_time(const data::ClipTiming& timing) {
  return {last_frame(timing.dt), last_frame(timing.resets), timing.step_rescale};
}

CodeModel::Place CodeModel::first_place(const Seeds& seeds, int64_t clips, int64_t number, const at::Device& device) {
  return {first_position(seeds, clips).to(device),
          at::full({clips, 1}, number, at::TensorOptions(device).dtype(at::kLong))};
}

CodeModel::Place CodeModel::place_of(const State& state, int64_t clips) const {
  const Place place{waiting_value(state, kRandom, {2}, at::kLong), waiting_value(state, kNumber, {1}, at::kLong)};
  if (place.random.size(0) == clips && place.number.size(0) == clips) return place;
  fail(ErrorKind::data, "the state must hold random positions and numbers of frames for its {} clips, got {} and {}",
       clips, place.random.size(0), place.number.size(0));
}

void CodeModel::set_place(State& state, const Place& place) {
  state.set(kRandom, place.random);
  state.set(kNumber, place.number);
}

at::Tensor CodeModel::sound_rows(const at::Tensor& logits) { return at::isfinite(logits).flatten(1).all(1); }

at::Tensor CodeModel::frames_of(const Drawn& drawn) const {
  const at::Tensor frames = codes_.frames_of(drawn.codes);
  return frames.masked_fill(drawn.sound.logical_not().view({-1, 1, 1, 1}), std::numeric_limits<double>::quiet_NaN());
}

at::Tensor CodeModel::hidden(const State& state, const at::Tensor& input, const at::Tensor& action) const {
  if (!masking_.causal() || (!forecast_waits(state) && !masking_.like_reference)) return input;
  const at::Tensor seen = masked_rows(action, input.size(0), input.options())
                              .logical_or(state.get(kNumber).squeeze(1) < masking_.first_hidden());
  return input.masked_fill(seen.logical_not().view({-1, 1, 1, 1}), masking_.value);
}

State CodeModel::after_context(const State& state) const {
  State later = state;
  later.set(kNumber, state.get(kNumber).clamp_min(masking_.context));
  return later;
}

Forecast CodeModel::next(const State& state, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  const int64_t B = clips_in(state);
  const ssm::Timing timing = waiting_timing(state, B);
  const at::Tensor input = hidden(state, waiting_input(state), action);
  auto out = dynamics_.step(input, action, core_state(state), timing);
  Place place = place_of(state, B);
  const Drawn drawn = draw(place.random, out.y);
  place.number = place.number + 1;
  return {frames_of(drawn), after_draw(out.state, drawn, state.get(kCodes), place, timing.step_rescale)};
}

// With all actions known, from where every further frame is hidden.
bool CodeModel::open_loop(const State& state, const at::Tensor& actions) const {
  if (!masking_.causal() || !actions.defined()) return false;
  if ((state.get(kNumber) + 1 < masking_.first_hidden()).any().item<bool>()) return false;
  return !masked_rows(actions, actions.size(0), actions.options()).any().item<bool>();
}

int64_t CodeModel::frames_at_once(const State& state, const at::Tensor& actions) const {
  return open_loop(state, actions) ? kFramesAtOnce : 1;
}

// Open loop: the first frame goes in as it waits, the others are hidden, so what the core says of all of them is known
// before any is drawn.
Forecast CodeModel::next_frames(const State& state, const at::Tensor& actions, int64_t frames) {
  if (!open_loop(state, actions) || frames < 2) return Forecaster::next_frames(state, actions, frames);
  at::NoGradGuard no_grad;
  const int64_t B = clips_in(state);
  const ssm::Timing timing = waiting_timing(state, B);
  if (timing.varies()) return Forecaster::next_frames(state, actions, frames);
  const at::Tensor first = hidden(state, waiting_input(state), actions.select(1, 0));
  const at::Tensor others = at::full_like(first, masking_.value).repeat({frames - 1, 1, 1, 1});
  const at::Tensor input = at::cat({first, others}).contiguous(at::MemoryFormat::ChannelsLast);
  auto out =
      dynamics_.run(input, B, slice_actions(actions, 0, frames), core_state(state), {{}, {}, timing.step_rescale});
  Place place = place_of(state, B);
  at::Tensor before;
  Drawn drawn{state.get(kCodes), {}, {}};
  std::vector<at::Tensor> all;
  for (int64_t k = 0; k < frames; ++k) {
    before = drawn.codes;
    drawn = draw(place.random, out.y[k]);
    all.push_back(frames_of(drawn));
  }
  place.number = place.number + frames;
  return {at::stack(all, 1), after_draw(out.state, drawn, before, place, timing.step_rescale)};
}

}  // namespace convssm::models
