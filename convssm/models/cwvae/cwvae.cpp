// Noise is drawn for all ticks of a level before it runs, from a stream of the level: a step that is run again draws the same.
#include "convssm/models/cwvae/cwvae.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/models/dynamics.h"
#include "convssm/models/frame_input.h"
#include "convssm/models/tokenizer.h"
#include "convssm/ops/check.h"
#include "convssm/ops/normal_numbers.h"

namespace convssm::models {
namespace {

constexpr double kBalanceFloor = 1;  // nats of a clip and level below which its posterior is left alone
constexpr int64_t kMostTelling = 64;

cwvae::Gaussian constant(const cwvae::Gaussian& g) { return {g.mean.detach(), g.std.detach()}; }

// Of each clip, summed over ticks: the divergence, and what of it is a loss.
struct ClipDivergence {
  at::Tensor value, loss;  // [B]
};

ClipDivergence clip_divergence(const cwvae::LevelRun& run, double balance) {
  const auto over_ticks = [](const cwvae::Gaussian& p, const cwvae::Gaussian& q) {
    return cwvae::divergence(p, q).sum(0);
  };
  if (balance == 0) {
    const at::Tensor value = over_ticks(run.posterior, run.prior);
    return {value.detach(), value};
  }
  const at::Tensor of_prior = over_ticks(constant(run.posterior), run.prior),
                   of_posterior = over_ticks(run.posterior, constant(run.prior));
  return {of_prior.detach(), (1 - balance) * of_prior + at::clamp_min(balance * of_posterior, kBalanceFloor)};
}

}  // namespace

Cwvae::Cwvae(const CwvaeOptions& options) : options_(options) {
  const Stream stream(options.seed, "cwvae");
  const cwvae::HierarchyOptions& o = options.hierarchy;
  if (options.on_codes) {
    const TokenizerPart tokenizer = make_tokenizer(options.codes.tokenizer);
    if (tokenizer) register_frozen("tokenizer", tokenizer.module);
    const CodeInput codes(*this, options.codes, tokenizer, stream);
    frames_ = cwvae::make_code_side(*this, codes, options.frames.filters, o.outputs(), stream);
  } else {
    frames_ = cwvae::make_pixel_side(*this, options.frames, o.outputs(), stream);
  }
  action_input_ = ActionInput(*this, options.actions, stream);
  hierarchy_ = register_module(
      "hierarchy", cwvae::Hierarchy(o, frames_->features(), action_input_.features(), stream.split("hierarchy")));
}

void Cwvae::check(const char* operation, const Clips& clips) const {
  check_untimed(operation, clips);
  action_input_.check(operation, clips.actions);
}

void Cwvae::check_data(const data::DataFormat& data) const {
  frames_->check_data(data);
  action_input_.check_data(data.actions);
}

int64_t Cwvae::telling_frames() const {
  return std::clamp(2 * options_.hierarchy.window(), Model::telling_frames(), kMostTelling);
}

Forecaster* Cwvae::as_forecaster() {
  return frames_->codes() == nullptr || frames_->codes()->has_frames() ? this : nullptr;
}

Tokenizer* Cwvae::as_tokenizer() {
  return frames_->codes() == nullptr ? nullptr : frames_->codes()->tokenizer().tokenizer;
}

TokenizerPart Cwvae::tokenizer_part() {
  return frames_->codes() == nullptr ? TokenizerPart{} : frames_->codes()->tokenizer();
}

at::Tensor Cwvae::features_of(const at::Tensor& inputs) {
  return frames_->features_of(time_first(inputs)).unflatten(0, {inputs.size(1), inputs.size(0)});
}

at::Tensor Cwvae::embedded(const at::Tensor& actions, int64_t N) const {
  return action_input_.embed(actions, N, parameters()[0].options().requires_grad(false));
}

at::Tensor Cwvae::embedded_clip(const at::Tensor& actions, int64_t T, int64_t B) const {
  const at::Tensor rows = embedded(actions.defined() ? time_first(actions) : actions, T * B);
  return rows.defined() ? rows.unflatten(0, {T, B}) : rows;
}

LossOutput Cwvae::loss(const Clips& clips, const LossContext& context, const State&) {
  check("loss", clips);
  std::vector<at::Tensor> noise;
  const cwvae::HierarchyOptions& o = options_.hierarchy;
  for (int64_t l = 0; l < o.levels && !options_.mean_only; ++l) {
    const int64_t ticks = (clips.frames() + o.frames_of(l) - 1) / o.frames_of(l);
    noise.push_back(ops::normal_numbers({ticks, clips.batch(), o.stochastic},
                                        context.random.split("level", static_cast<uint64_t>(l)),
                                        parameters()[0].options().requires_grad(false)));
  }
  return loss_of(clips, noise);
}

LossOutput Cwvae::loss_of(const Clips& clips, const std::vector<at::Tensor>& noise) {
  check("loss", clips);
  const at::Tensor inputs = frames_->inputs_of("loss", clips);
  const int64_t B = clips.batch(), T = clips.frames();
  const auto given = [&](int64_t level, int64_t tick) {
    return noise.empty() ? at::Tensor() : noise[static_cast<size_t>(level)][tick];
  };
  const std::vector<bool> seen(static_cast<size_t>(T), true);
  const auto runs = hierarchy_->run(features_of(inputs), seen, embedded_clip(clips.actions, T, B), given, {}, true);

  const at::Tensor targets = time_first(frames_->targets_of(clips, inputs));
  const at::Tensor valid = clips.valid.defined() ? time_first(clips.valid) : at::Tensor();
  const double frames = static_cast<double>(T);
  const at::Tensor nll =
      frames_->nll(outputs(runs[0].z, runs[0].h).flatten(0, 1), targets, valid).sum() / static_cast<double>(B) / frames;
  LossOutput out{nll, {{"nll", nll.detach()}}, {}};
  at::Tensor of_clips;  // [B], the divergences that are a loss
  for (size_t l = 0; l < runs.size(); ++l) {
    const std::string name = "kl_" + std::to_string(l);
    if (!runs[l].posterior.mean.defined()) continue;  // a level that does not see
    const ClipDivergence kl = clip_divergence(runs[l], options_.kl_balance);
    out.parts.emplace_back(name, kl.value.mean() / frames);
    const at::Tensor weighted = options_.beta[options_.beta.size() == 1 ? 0 : l] * kl.loss;
    of_clips = of_clips.defined() ? of_clips + weighted : weighted;
  }
  if (options_.free_nats > 0) of_clips = at::clamp_min(of_clips - options_.free_nats, 0);
  out.loss = nll + of_clips.mean() / frames;
  return out;
}

std::string Cwvae::description() const {
  const cwvae::HierarchyOptions& o = options_.hierarchy;
  return fmt::format("CW-VAE on {}, {} levels of factor {}, {:.2f}M parameters{}",
                     options_.on_codes ? "codes" : "pixels", o.levels, o.factor,
                     static_cast<double>(learned_count(*this)) * 1e-6,
                     frames_->codes() != nullptr && frames_->codes()->has_frames() ? " beside its tokenizer" : "");
}

}  // namespace convssm::models
