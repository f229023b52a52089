// What TECO is made of, and its losses. How it forecasts stands in teco_forecast.cpp.
#include "convssm/models/teco/teco.h"

#include <ATen/ATen.h>

#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"
#include "convssm/ops/dense.h"
#include "convssm/ssm/initializers.h"

namespace convssm::models {

Teco::Teco(const TecoOptions& options) : CodeModel(options, Stream(options.seed, "teco")), options_(options) {
  const Stream stream(options.seed, "teco");
  const data::CodeFormat grid = codes_.format();
  const int64_t E = options.features, proj = options.quantizer.features;
  const cores::FrameShape latent = latent_shape(grid, options.encoder);
  height_ = latent.height, width_ = latent.width;
  Stream before = stream.split("before_first"), in = stream.split("project_in"), out = stream.split("project_out");
  before_first_ =
      register_parameter("before_first", ssm::normal({codes_.features(), grid.height, grid.width}, 0.02, before));
  encoder_ = register_module("encoder", nn::Encoder(2 * codes_.features(), options.encoder, stream.split("encoder")));
  to_latent_ = register_module("to_latent", nn::Dense(options.encoder.depths.back(), E, stream.split("to_latent")));
  project_in_ = register_parameter("project_in", ssm::lecun_normal({proj, E}, E, in));
  quantizer_ = register_module("quantizer", nn::make_quantizer(options.quantizer, stream.split("quantizer")));
  project_out_ = register_parameter("project_out", ssm::lecun_normal({E, proj}, proj, out));
  dynamics_ = Dynamics(*this, options.core, options.actions, {E, height_, width_}, stream);
  options_.maskgit.codes = quantizer_->size(), options_.maskgit.cond = dynamics_.out_channels();
  options_.maskgit.height = height_, options_.maskgit.width = width_;
  prior_ = register_module("prior", nn::MaskGit(options_.maskgit, stream.split("prior")));
  decoder_ = register_module(
      "decoder", nn::Decoder(dynamics_.out_channels() + E, grid.count, options.decoder, stream.split("decoder")));
}

at::Tensor Teco::first_before(int64_t B) const { return before_first_.unsqueeze(0).expand({B, -1, -1, -1}); }

Teco::Latents Teco::posterior(const at::Tensor& before, const at::Tensor& now, const nn::QuantizerUse& use) {
  Latents out;
  const at::Tensor pair = at::cat({before, now}, 1).contiguous(at::MemoryFormat::ChannelsLast);
  out.z = to_latent_(encoder_(pair));
  out.quantized = quantizer_->forward(ops::dense(out.z, project_in_), use);
  out.zq = ops::dense(out.quantized.out, project_out_);
  return out;
}

at::Tensor Teco::latent_of(const at::Tensor& tokens) {
  return ops::dense(quantizer_->embed(tokens).to(project_out_.scalar_type()), project_out_);
}

// tokens [S*B,h,w] and deter [S*B,D,h,w] of the frames that count.
at::Tensor Teco::prior_loss(const at::Tensor& tokens, const at::Tensor& deter, const Choices& choices,
                            const at::Tensor& blind) {
  const int64_t B = blind.size(0), S = tokens.size(0) / B, n = height_ * width_;
  const at::Tensor hidden = choices.hidden.to(tokens.device());
  const at::Tensor shown = tokens.masked_fill(hidden, prior_->hidden_token());
  const at::Tensor each = cross_entropy(prior_(shown, deter), tokens, 0);
  const at::Tensor sums = (each * hidden).sum({1, 2}).view({S, B}),
                   counts = hidden.sum({1, 2}).view({S, B}).to(each.scalar_type());
  const MaskingOptions& masking = options_.masking;
  const auto tokens_of_frame = static_cast<double>(n);
  if (!masking.causal() || masking.like_reference) {
    const at::Tensor all = sums.sum() / counts.sum() * tokens_of_frame;
    return masking.causal() ? all + label_entropy(quantizer_->size(), 0) * tokens_of_frame : all;
  }
  // Rows with actions count from the end of the context on, rows without everywhere.
  const at::Tensor late =
      (at::tensor(choices.frames, tokens.options()) >= masking.context - 1).to(each.scalar_type()).unsqueeze(1);
  const at::Tensor sighted = blind.logical_not().to(each.scalar_type()), blinded = blind.to(each.scalar_type());
  const at::Tensor with = (sums * late * sighted).sum() / (counts * late).sum().clamp_min(1);
  return (with + (sums * blinded).sum() / counts.sum()) * tokens_of_frame;
}

LossOutput Teco::loss(const Clips& clips, const LossContext& context, const State&) {
  const int64_t B = clips.batch(), predictions = std::max<int64_t>(clips.frames() - 1, 1);
  Choices choices = draw_choices(options_.masking, predictions, context.random);
  const int64_t frames = static_cast<int64_t>(choices.frames.size()) * B;
  choices.hidden = draw_masks(options_.schedule, frames, height_, width_, context.random.split("prior"));
  choices.restart = nn::codes_may_restart(context.step, context.steps);
  return loss_of(clips, choices);
}

LossOutput Teco::loss_of(const Clips& clips, const Choices& choices) {
  const MaskingOptions& masking = options_.masking;
  dynamics_.actions().check("loss", clips.actions);
  const int64_t B = clips.batch(), T = clips.frames(), L = T - 1;
  ops::require("loss", L > 0, "a clip needs at least 2 frames (train.frames), one to see and one to predict, got {}",
               T);
  const at::Tensor codes = time_first(codes_.codes_of("loss", clips));  // [T*B,H,W]
  const at::Tensor embedded = codes_.embed(codes);
  const at::Tensor before = at::cat({first_before(B), embedded.slice(0, 0, L * B)});
  const bool learn = is_training() && at::GradMode::is_enabled();
  const Latents latents = posterior(before, embedded, {learn, choices.restart, choices.random});
  const at::Tensor blind = blind_rows(clips.actions, B).to(codes.device());
  const at::Tensor input = at::cat({latents.z.slice(0, 0, B), latents.zq.slice(0, B, L * B)});
  const auto out = dynamics_.run(hide_frames(input, B, masking, blind), B, slice_actions(clips.actions, 1, T), {},
                                 slice_timing(clips.timing, 0, L));

  const auto counted = [&](const at::Tensor& x) { return chosen_frames(x, B, choices.frames); };
  const at::Tensor deter = counted(out.y.flatten(0, 1)), zq = counted(latents.zq.slice(0, B));
  const at::Tensor labels = counted(codes.slice(0, B)), tokens = counted(latents.quantized.codes.slice(0, B));
  const at::Tensor logits = decoder_(at::cat({deter, zq}, 1).contiguous(at::MemoryFormat::ChannelsLast));
  const at::Tensor recon = cross_entropy(logits, labels, options_.label_smoothing).sum({1, 2}).mean();
  const at::Tensor prior = prior_loss(tokens, deter, choices, blind);

  LossOutput loss;
  loss.loss = recon + prior + latents.quantized.loss;
  loss.parts = {{"recon", recon.detach()}, {"prior", prior.detach()}};
  const auto add = [&](const char* name, const at::Tensor& part) {
    if (part.defined()) loss.parts.emplace_back(name, part.detach());
  };
  add("commitment", latents.quantized.commitment);
  add("codebook", latents.quantized.table);
  if (is_training()) {
    add("used", at::scalar_tensor(quantizer_->used(), at::kDouble));
    add("perplexity", at::scalar_tensor(quantizer_->perplexity(), at::kDouble));
  }
  return loss;
}

std::string Teco::description() const {
  return fmt::format("TECO, {} core, {} x {} of {} tokens, {:.2f}M parameters{}", options_.core.value("name", "?"),
                     height_, width_, quantizer_->size(), static_cast<double>(learned_count(*this)) * 1e-6,
                     codes_.has_frames() ? " beside its tokenizer" : "");
}

}  // namespace convssm::models
