// CW-VAE (Saxena et al. 2021, arXiv 2102.09532): a hierarchy of recurrent latents (cwvae/hierarchy.h), of which higher levels
// tick more slowly, over frames of pixels or of codes (cwvae/frame_side.h). Level 0 is decoded.
//   loss = mean over clips of [ sum_t -log p(x_t | z_t, h_t) + sum_levels sum_ticks KL(posterior || prior) ] / T
// the negative evidence bound per frame, in the log as `nll` and `kl_<level>`. Every frame counts, the first too.
// A forecaster takes the context in by posteriors and goes on by priors. A context may have any length: a window that it ends in
// is seen as far as it goes, as training sees the last window of a clip whose length is no multiple of it.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/models/action_input.h"
#include "convssm/models/codes/code_input.h"
#include "convssm/models/cwvae/frame_side.h"
#include "convssm/models/cwvae/hierarchy.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/model.h"

namespace convssm::models {

struct CwvaeOptions {
  cwvae::PixelSideOptions frames;
  bool on_codes = false;
  CodeInputOptions codes;  // of models on codes
  cwvae::HierarchyOptions hierarchy;
  ActionOptions actions;
  std::vector<double> beta = {1};  // weight of the divergence, of all levels or of each
  double kl_balance = 0;   // a: (1 - a) KL(const posterior || prior) + max(1, a KL(posterior || const prior)); 0: KL
  double free_nats = 0;    // of a clip, which cost nothing
  bool mean_only = false;  // nothing is drawn: latents are the means
  uint64_t seed = 0;       // of the initial values

  CwvaeOptions() { actions.actions = 0; }

  // From the `model` section of a config, without its `name`; the frames' size is not part of it.
  static CwvaeOptions from_json(const nlohmann::json& json);
};

class Cwvae : public Model, public Forecaster {
 public:
  explicit Cwvae(const CwvaeOptions& options);

  LossOutput loss(const Clips& clips, const LossContext& context, const State& start = {}) override;

  // With these numbers instead of drawn ones, for each level [ticks,B,s].
  LossOutput loss_of(const Clips& clips, const std::vector<at::Tensor>& noise);

  std::string obstacle_to_chunks() const override { return "its levels look at whole clips, and latents are drawn"; }
  void check_data(const data::DataFormat& data) const override;
  int64_t telling_frames() const override;
  int64_t given_frames() override { return 0; }
  Forecaster* as_forecaster() override;
  Tokenizer* as_tokenizer() override;
  TokenizerPart tokenizer_part() override;
  std::string description() const override;
  std::string label() const override { return "cwvae"; }

  State start(const Clips& context, const Seeds& seeds) override;
  Forecast next(const State& state, const at::Tensor& action) override;
  State observe(const State& state, const at::Tensor& frame, const at::Tensor& action) override;
  data::ActionFormat actions() const override { return action_input_.format(); }
  bool draws() const override { return !options_.mean_only; }
  int64_t clips_in(const State& state) const override;

 protected:
  // Standard normal numbers [B,s] of the tick of a level that begins with a frame, counted from the beginning of the context;
  // `random` [B,2] has the seeds of the clips. Whether the posterior or the prior takes them is no matter of theirs.
  virtual at::Tensor tick_noise(const at::Tensor& random, int64_t level, int64_t frame) const;

 private:
  struct Window;

  void check(const char* operation, const Clips& clips) const;
  at::Tensor features_of(const at::Tensor& inputs);                 // [B,T,...] -> [T,B,E]
  at::Tensor embedded(const at::Tensor& actions, int64_t N) const;  // [N,..] -> [N,A]; undefined: there are none
  at::Tensor embedded_clip(const at::Tensor& actions, int64_t T, int64_t B) const;  // [B,T,..] -> [T,B,A]
  at::Tensor outputs(const at::Tensor& z, const at::Tensor& h) const { return at::cat({z, h}, -1); }
  cwvae::TickNoise noise_from(const at::Tensor& random, int64_t first) const;

  Window window_of(const State& state) const;
  State state_of(const Window& window) const;
  void begin_window(Window& window) const;
  void replay(Window& window);

  CwvaeOptions options_;
  std::unique_ptr<cwvae::FrameSide> frames_;
  ActionInput action_input_;
  cwvae::Hierarchy hierarchy_{nullptr};
};

}  // namespace convssm::models
