#include "convssm/models/codes/code_model.h"

#include <ATen/ATen.h>

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
}

at::Tensor CodeModel::last_frame(const at::Tensor& x) { return x.defined() ? x.select(1, x.size(1) - 1).clone() : x; }

ssm::Timing CodeModel::last_time(const data::ClipTiming& timing) {
  return {last_frame(timing.dt), last_frame(timing.resets), timing.step_rescale};
}

at::Tensor CodeModel::hidden(const State& state, const at::Tensor& input, const at::Tensor& action) const {
  if (!masking_.causal() || (!forecast_waits(state) && !masking_.like_reference)) return input;
  const at::Tensor blind = masked_rows(action, input.size(0), input.options());
  return input.masked_fill(blind.logical_not().view({-1, 1, 1, 1}), masking_.value);
}

Forecast CodeModel::next(const State& state, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  const ssm::Timing timing = waiting_timing(state, clips_in(state));
  const at::Tensor input = hidden(state, waiting_input(state), action);
  auto out = dynamics_.step(input, action, core_state(state), timing);
  at::Tensor random = state.get(kRandom);
  const Drawn drawn = draw(random, out.y);
  return {codes_.frames_of(drawn.codes), after_draw(out.state, drawn, state.get(kCodes), random, timing.step_rescale)};
}

bool CodeModel::open_loop(const at::Tensor& actions) const {
  if (!masking_.causal() || !actions.defined()) return false;
  return !masked_rows(actions, actions.size(0), actions.options()).any().item<bool>();
}

int64_t CodeModel::frames_at_once(const State&, const at::Tensor& actions) const {
  return open_loop(actions) ? kFramesAtOnce : 1;
}

// Open loop: the first frame goes in as it waits, the others are hidden, so what the core says of all of them is known
// before any is drawn.
Forecast CodeModel::next_frames(const State& state, const at::Tensor& actions, int64_t frames) {
  if (!open_loop(actions) || frames < 2) return Forecaster::next_frames(state, actions, frames);
  at::NoGradGuard no_grad;
  const ssm::Timing timing = waiting_timing(state, clips_in(state));
  if (timing.varies()) return Forecaster::next_frames(state, actions, frames);
  const at::Tensor first = hidden(state, waiting_input(state), actions.select(1, 0));
  const at::Tensor others = at::full_like(first, masking_.value).repeat({frames - 1, 1, 1, 1});
  const at::Tensor input = at::cat({first, others}).contiguous(at::MemoryFormat::ChannelsLast);
  auto out = dynamics_.run(input, first.size(0), slice_actions(actions, 0, frames), core_state(state),
                           {{}, {}, timing.step_rescale});
  at::Tensor random = state.get(kRandom), before;
  Drawn drawn{state.get(kCodes), {}};
  std::vector<at::Tensor> all;
  for (int64_t k = 0; k < frames; ++k) {
    before = drawn.codes;
    drawn = draw(random, out.y[k]);
    all.push_back(codes_.frames_of(drawn.codes));
  }
  return {at::stack(all, 1), after_draw(out.state, drawn, before, random, timing.step_rescale)};
}

}  // namespace convssm::models
