// Encoder and decoder run over all frames of all clips at once, frames of one time together: frame t of clip b is row tB + b.
#include "convssm/models/fitvid/fitvid.h"

#include <ATen/ATen.h>

#include "convssm/models/dynamics.h"
#include "convssm/models/tokenizer.h"
#include "convssm/ops/check.h"
#include "convssm/ops/normal_numbers.h"

namespace convssm::models {
namespace {

// What is decoded: rows of the predictions, and for each the row of the frame that it is shown.
struct Decoded {
  at::Tensor predictions, shown;
};

Decoded decoded_rows(const std::vector<int64_t>& cuts, int64_t T, const at::Device& device) {
  const int64_t B = static_cast<int64_t>(cuts.size());
  std::vector<int64_t> predictions, shown;
  for (const bool mirrored : {false, true}) {
    for (int64_t b = 0; b < B; ++b) {
      const int64_t drawn = cuts[static_cast<size_t>(b)], cut = mirrored ? T - 2 - drawn : drawn;
      for (int64_t t = cut + 1; t < T; ++t) {
        predictions.push_back((t - 1) * B + b);
        shown.push_back(cut * B + b);
      }
    }
  }
  return {at::tensor(predictions, at::kLong).to(device), at::tensor(shown, at::kLong).to(device)};
}

Decoded all_rows(int64_t cut, int64_t T, int64_t B, const at::Device& device) {
  const at::Tensor rows = at::arange((T - 1) * B, at::TensorOptions(device).dtype(at::kLong));
  return {rows, cut * B + rows.remainder(B)};
}

}  // namespace

FitVid::FitVid(const FitVidOptions& options) : options_(options) {
  const Stream stream(options.seed, "fitvid");
  if (options.on_codes) {
    const TokenizerPart tokenizer = make_tokenizer(options.codes.tokenizer);
    if (tokenizer) register_frozen("tokenizer", tokenizer.module);
    frames_ = fitvid::make_code_side(CodeInput(*this, options.codes, tokenizer, stream), options.coded);
  } else {
    frames_ = fitvid::make_pixel_side(options.frames);
  }
  const fitvid::CoderOptions& coder = options.coder;
  const fitvid::CoderFrames frames = frames_->frames();
  fitvid::check_frames(coder, frames);
  encoder_ = register_module("encoder", fitvid::Encoder(coder, frames.in, stream.split("encoder")));
  decoder_ = register_module("decoder", fitvid::Decoder(coder, frames, stream.split("decoder")));
  action_input_ = ActionInput(*this, options.actions, stream);
  const int64_t g = coder.hidden, size = options.memory, z = options.stochastic ? options.latent : 0;
  if (options.stochastic) {
    posterior_ = register_module("posterior", fitvid::GaussianMemory(g, size, z, stream.split("posterior")));
    prior_ = register_module("prior", fitvid::GaussianMemory(g, size, z, stream.split("prior")));
  }
  predictor_ = register_module("predictor",
                               fitvid::Predictor(g + action_input_.features() + z, size, g, stream.split("predictor")));
}

void FitVid::check(const char* operation, const Clips& clips) const {
  check_untimed(operation, clips);
  action_input_.check(operation, clips.actions);
}

void FitVid::check_data(const data::DataFormat& data) const {
  frames_->check_data(data);
  action_input_.check_data(data.actions);
}

void FitVid::check_length(int64_t frames) const {
  ops::require("model", options_.n_past < frames,
               "n_past, the frames of the context, must be below train.frames = {}, got {}", frames, options_.n_past);
}

Forecaster* FitVid::as_forecaster() {
  return frames_->codes() == nullptr || frames_->codes()->has_frames() ? this : nullptr;
}

Tokenizer* FitVid::as_tokenizer() { return tokenizer_part().tokenizer; }

TokenizerPart FitVid::tokenizer_part() {
  return frames_->codes() == nullptr ? TokenizerPart{} : frames_->codes()->tokenizer();
}

fitvid::Statistics FitVid::statistics() const {
  if (!is_training()) return fitvid::Statistics::running;
  return at::GradMode::is_enabled() ? fitvid::Statistics::learn : fitvid::Statistics::batch;
}

at::Tensor FitVid::step_input(const at::Tensor& hidden, const at::Tensor& actions, const at::Tensor& z) const {
  const at::Tensor pixels = hidden.flatten(0, 1).unsqueeze(-1).unsqueeze(-1);
  const at::Tensor told =
      action_input_.beside(pixels, actions).flatten(1).unflatten(0, {hidden.size(0), hidden.size(1)});
  return z.defined() ? at::cat({told, z}, 2) : told;
}

LossOutput FitVid::loss(const Clips& clips, const LossContext& context, const State&) {
  const int64_t T = clips.frames(), B = clips.batch();
  FitVidDraws draws;
  Stream cuts = context.random.split("cuts");
  for (int64_t b = 0; b < B && T > 1; ++b) {
    draws.cuts.push_back(static_cast<int64_t>(cuts.below(static_cast<uint64_t>(T - 1))));
  }
  if (options_.stochastic && T > 1) {
    draws.noise = ops::normal_numbers({T - 1, B, options_.latent}, context.random.split("latents"),
                                      parameters()[0].options().requires_grad(false));
  }
  return loss_of(clips, draws);
}

LossOutput FitVid::loss_of(const Clips& clips, const FitVidDraws& draws) {
  check("loss", clips);
  const int64_t B = clips.batch(), T = clips.frames(), L = T - 1;
  ops::require("loss", L > 0, "a clip needs at least 2 frames (train.frames), one to see and one to predict, got {}",
               T);
  const at::Tensor inputs = frames_->inputs_of("loss", clips);
  const fitvid::Statistics statistics = this->statistics();
  const fitvid::Encoded encoded = encoder_(frames_->seen(time_first(inputs)), statistics);
  const at::Tensor hidden = encoded.hidden.unflatten(0, {T, B}), before = hidden.slice(0, 0, L);

  at::Tensor z, divergence;
  if (options_.stochastic) {
    fitvid::CellStates one = posterior_->memory->zeros(B, hidden.options()), other = one;
    const fitvid::Gaussian posterior = posterior_(hidden.slice(0, 1), one), prior = prior_(before, other);
    z = posterior.sample(draws.noise.to(hidden.options()));
    divergence = fitvid::divergence(posterior, prior).sum() / static_cast<double>(B);
  }
  const at::Tensor actions = slice_actions(clips.actions, 1, T);
  fitvid::CellStates state = predictor_->memory->zeros(B, hidden.options());
  const at::Tensor predicted =
      predictor_(step_input(before, actions.defined() ? time_first(actions) : actions, z), state).flatten(0, 1);

  const Decoded rows = options_.n_past > 0 ? all_rows(std::min(options_.n_past, T) - 1, T, B, hidden.device())
                                           : decoded_rows(draws.cuts, T, hidden.device());
  const auto chosen = [&](const at::Tensor& x) {  // of [B,T,...]
    return x.defined() ? time_first(x.slice(1, 1)).index_select(0, rows.predictions) : x;
  };
  const at::Tensor said = decoder_(predicted.index_select(0, rows.predictions), encoded.skips, rows.shown, statistics);
  const at::Tensor error =
      frames_->errors(said, chosen(frames_->targets_of(clips, inputs)), chosen(clips.valid)).mean();
  LossOutput out{error, {{frames_->error_name(), error.detach()}}, {}};
  if (const CodeInput* codes = frames_->codes()) {
    const data::CodeFormat grid = codes->format();
    out.parts.emplace_back("nats_per_code", error.detach() / static_cast<double>(grid.height * grid.width));
  }
  if (divergence.defined()) {
    out.parts.emplace_back("kl", divergence.detach() / static_cast<double>(L));
    out.loss = error + options_.beta * divergence;
  }
  return out;
}

std::string FitVid::description() const {
  const fitvid::CoderOptions& o = options_.coder;
  return fmt::format("FitVid on {}, {} stages from {} filters, {:.2f}M parameters{}",
                     options_.on_codes ? "codes" : "pixels", o.stages, o.filters,
                     static_cast<double>(learned_count(*this)) * 1e-6,
                     frames_->codes() != nullptr && frames_->codes()->has_frames() ? " beside its tokenizer" : "");
}

}  // namespace convssm::models
