// TECO (Yan et al. 2023, arXiv 2210.02396) over any temporal core. Frames of codes are compressed once more, a pair of frames
// at a time; the core runs on the small latents; what comes is drawn from a MaskGit prior and decoded to codes.
//   z_t = Dense(Encoder([e_{t-1}, e_t])),  zq_t = W_out table[k_t],  k_t nearest to W_in z_t on the unit sphere   posterior
//   deter_t = core([zq_t, embedding(a_{t+1})])               (z_0 enters as it is)                              dynamics
//   p(k_{t+1} | deter_t) by MaskGit, drawn by draft and revise                                                     prior
//   logits of codes_{t+1} = Decoder([deter_t, zq_{t+1}])                                                           decoder
// Loss: recon + prior + commitment + codebook, by these names in the log. recon: smoothed cross-entropy, summed over the
// pixels of a frame; prior: cross-entropy of the hidden tokens, times the tokens of a frame. Both of the frames that count
// (codes/masking.h); the others of all frames.
#pragma once

#include "convssm/models/codes/code_model.h"
#include "convssm/models/teco/draft_and_revise.h"
#include "convssm/models/teco/mask_schedule.h"
#include "convssm/nn/maskgit.h"
#include "convssm/nn/quantizer.h"

namespace convssm::models {

struct TecoOptions : CodeModelOptions {
  int64_t features = 64;  // E, of a latent
  nn::QuantizerOptions quantizer;
  nn::MaskGitOptions maskgit;
  MaskSchedule schedule;
  DraftOptions draft;

  TecoOptions();

  // From the `model` section of a config, without its `name`.
  static TecoOptions from_json(const nlohmann::json& json);
};

class Teco : public CodeModel {
 public:
  explicit Teco(const TecoOptions& options);

  LossOutput loss(const Clips& clips, const LossContext& context, const State& start = {}) override;
  std::string obstacle_to_chunks() const override { return "the tokens that its prior does not see are drawn"; }
  std::string description() const override;
  std::string label() const override { return "teco-" + options_.core.value("name", "?"); }

  // The loss with what is left to chance given.
  LossOutput loss_of(const Clips& clips, const Choices& choices);

  State start(const Clips& context, const Seeds& seeds) override;
  State observe(const State& state, const at::Tensor& frame, const at::Tensor& action) override;
  int64_t clips_in(const State& state) const override { return waiting_latent(state).size(0); }
  bool draws() const override { return true; }  // the orders in which its prior says the tokens, at least
  std::unique_ptr<FrameEngine> compile(const EngineOptions& options) override;

  const TecoOptions& options() const { return options_; }

 private:
  double* temperature_setting() override { return options_.draft.sampling.temperature_setting(); }
  friend class TecoEngine;
  struct Latents {
    at::Tensor z, zq;  // [N,E,h,w]: as they are, and the nearest that codes can say
    nn::Quantized quantized;
  };
  // Of embedded codes [N,F,H,W].
  Latents posterior(const at::Tensor& before, const at::Tensor& now, const nn::QuantizerUse& use = {});
  at::Tensor latent_of(const at::Tensor& tokens);  // [N,h,w] int64 -> [N,E,h,w]
  at::Tensor first_before(int64_t B) const;        // what stands before the first frame

  at::Tensor waiting_latent(const State& state) const;
  at::Tensor waiting_input(const State& state) override { return waiting_latent(state); }
  Drawn draw(at::Tensor& random, const at::Tensor& deter) override;
  State after_draw(const State& core, const Drawn& drawn, const at::Tensor& before, const Place& place,
                   double step_rescale) const override;
  State after(const State& core, const at::Tensor& latent, const at::Tensor& codes, bool forecast, const Place& place,
              const ssm::Timing& timing) const;
  at::Tensor prior_loss(const at::Tensor& tokens, const at::Tensor& deter, const Choices& choices,
                        const at::Tensor& blind);

  TecoOptions options_;
  int64_t height_ = 0, width_ = 0;  // of a latent
  at::Tensor before_first_;         // [F,H,W]
  nn::Encoder encoder_{nullptr};
  nn::Dense to_latent_{nullptr};
  at::Tensor project_in_, project_out_;  // [proj,E] and [E,proj]
  std::shared_ptr<nn::Quantizer> quantizer_;
  nn::MaskGit prior_{nullptr};
  nn::Decoder decoder_{nullptr};
};

}  // namespace convssm::models
