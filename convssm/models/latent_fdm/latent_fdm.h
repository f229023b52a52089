// Latent FDM: flexible diffusion (Harvey et al. 2022, arXiv 2205.11495) on the latents of a continuous tokenizer, or on pixels. The
// denoiser (latent_fdm/denoiser.h) takes any K frames of a clip of which some are given, and is trained on random such sets
// (latent_fdm/index_sets.h):
//   loss = mean over B, K, C, H, W of [frame is not given] (eps - eps^(sqrt(a) x + sqrt(1 - a) eps))^2
// Padding frames, of the next clip of the batch or of the same one if it is alone, count. In the log, `noise_error` is the mean over
// what is not given: 1 is a network that says nothing.
// A forecaster draws frames in blocks (latent_fdm/schemes.h); frames that were drawn ahead wait in the state.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/models/action_input.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/latent_fdm/denoiser.h"
#include "convssm/models/latent_fdm/diffusion.h"
#include "convssm/models/latent_fdm/schemes.h"
#include "convssm/models/model.h"
#include "convssm/models/tokenizer.h"

namespace convssm::models {

struct LatentFdmOptions {
  nlohmann::json tokenizer = nullptr;      // of a continuous one; null: pixels
  data::FrameFormat frames = {1, 32, 32};  // of pixels
  latent_fdm::DenoiserOptions denoiser;
  latent_fdm::DiffusionOptions diffusion;
  latent_fdm::SchemeOptions scheme;  // its `frames` is K
  latent_fdm::SamplerOptions sampler;
  int64_t horizon = 0;  // of hierarchies; 0: the length of the clips of the training
  ActionOptions actions;
  uint64_t seed = 0;  // of the initial values

  LatentFdmOptions() { actions.actions = 0; }

  // From the `model` section of a config, without its `name`; the frames' size is not part of it.
  static LatentFdmOptions from_json(const nlohmann::json& json);
};

// What one training example of each clip is made of, for K frames.
struct FdmExample {
  at::Tensor clip, numbers;   // [B,K] int64: which row of the batch, which frame
  at::Tensor given, padding;  // [B,K] bool
  at::Tensor steps;           // [B] int64, of the diffusion
  at::Tensor noise;           // [B,K,C,h,w]
};

class LatentFdm : public Model, public Forecaster {
 public:
  explicit LatentFdm(const LatentFdmOptions& options);

  LossOutput loss(const Clips& clips, const LossContext& context, const State& start = {}) override;

  // With this example instead of a drawn one.
  LossOutput loss_of(const Clips& clips, const FdmExample& example);
  FdmExample draw_example(int64_t clips, int64_t frames, const Stream& random) const;

  std::string obstacle_to_chunks() const override {
    return "its loss is of frames from all over a clip, with drawn noise";
  }
  void check_data(const data::DataFormat& data) const override;
  void check_length(int64_t frames) const override;
  int64_t telling_frames() const override { return options_.scheme.frames; }
  int64_t loss_frames() const override { return options_.scheme.frames; }
  int64_t given_frames() override { return 0; }
  Forecaster* as_forecaster() override { return this; }
  Tokenizer* as_tokenizer() override { return tokenizer_.tokenizer; }
  TokenizerPart tokenizer_part() override { return tokenizer_; }
  std::string description() const override;
  std::string label() const override { return "latent_fdm"; }

  State start(const Clips& context, const Seeds& seeds) override;
  Forecast next(const State& state, const at::Tensor& action) override;
  Forecast next_frames(const State& state, const at::Tensor& actions, int64_t frames) override;
  State observe(const State& state, const at::Tensor& frame, const at::Tensor& action) override;
  data::ActionFormat actions() const override { return action_input_.format(); }
  bool draws() const override { return true; }
  int64_t clips_in(const State& state) const override;

  latent_fdm::Denoiser& denoiser() { return denoiser_; }

 protected:
  // Standard normal numbers [B,C,h,w] of a frame, counted from the beginning of the context, before the first step of the sampler
  // (step 0) and in each; `random` [B,2] has the seeds of the clips. A frame that is drawn again takes the same.
  virtual at::Tensor frame_noise(const at::Tensor& random, int64_t frame, int64_t step) const;

 private:
  struct Window;

  void check(const char* operation, const Clips& clips) const;
  data::FrameFormat frame_format() const;
  at::TensorOptions like() const;
  at::Tensor latents_of(const at::Tensor& video);   // [B,T,C,H,W] -> [B,T,c,h,w], not scaled
  at::Tensor frames_of(const at::Tensor& latents);  // scaled ones -> [B,T,C,H,W] in [-1,1]
  at::Tensor scale() const;                         // [1]
  void learn_from(const at::Tensor& latents, int64_t frames);
  latent_fdm::SchemeOptions scheme() const;

  bool takes_actions() const { return action_input_.features() > 0; }
  at::Tensor masked_actions(int64_t B, int64_t T) const;
  at::Tensor told_actions(const char* operation, const at::Tensor& actions, int64_t B, int64_t T) const;
  at::Tensor embedded(const at::Tensor& actions) const;  // [B,K,..] -> [B*K,E]

  Window window_of(const State& state) const;
  State state_of(const Window& window) const;
  void keep_needed(Window& window) const;
  void drop_ahead(Window& window) const;
  void draw(Window& window, const at::Tensor& known) const;
  void draw_stage(Window& window, const latent_fdm::Stage& stage, const at::Tensor& known) const;
  at::Tensor give(Window& window, const at::Tensor& known) const;

  LatentFdmOptions options_;
  TokenizerPart tokenizer_;
  ActionInput action_input_;
  mutable latent_fdm::Denoiser denoiser_{nullptr};
  std::vector<double> alpha_bars_;
  at::Tensor scale_,
      clip_frames_;  // buffers [1]: of latents, 0 before the first loss; the length of the clips trained on
};

}  // namespace convssm::models
