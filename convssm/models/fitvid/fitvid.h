// FitVid (Babaeizadeh et al. 2021, arXiv 2106.13195): frames as vectors (fitvid/coder.h), which recurrent networks with a latent
// of every frame predict (fitvid/recurrent.h), over frames of pixels or of codes (fitvid/frame_side.h).
//   loss = mean of the errors of predicted frames + beta sum_t KL(posterior_t || prior_t), a mean over clips
// Every prediction is shown one frame of its clip, the last of the context: in forecasts it may lie far back. So training cuts
// each clip where a context may end, after frame c, shows frame c, and counts the frames after it alone. A clip is cut twice, at
// c, which is drawn, and at T-2-c: together that is T predictions, so that every step takes the same memory and time.
// With n_past = n it is as published: frame n-1 is shown to all, and all frames count.
// Batch norm takes the statistics of all frames of a step in training, and moves running ones; everything else takes those.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/models/action_input.h"
#include "convssm/models/codes/code_input.h"
#include "convssm/models/fitvid/coder.h"
#include "convssm/models/fitvid/frame_side.h"
#include "convssm/models/fitvid/recurrent.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/model.h"

namespace convssm::models {

struct FitVidOptions {
  PixelInput frames;
  bool on_codes = false;
  CodeInputOptions codes;  // of models on codes
  fitvid::CodeSideOptions coded;
  fitvid::CoderOptions coder;
  int64_t memory = 256;    // of LSTM layers and the layers before them
  int64_t latent = 10;     // z
  bool stochastic = true;  // false: there is no latent
  double beta = 1e-4;
  int64_t n_past = 0;  // frames of the context in training; 0: drawn
  ActionOptions actions;
  uint64_t seed = 0;  // of the initial values

  FitVidOptions() { actions.actions = 0; }

  // From the `model` section of a config, without its `name`; the frames' size is not part of it.
  static FitVidOptions from_json(const nlohmann::json& json);
};

// What a loss draws: normal numbers [T-1,B,z], and the last frame of the context of each clip, 0 to T-2.
struct FitVidDraws {
  at::Tensor noise;  // undefined without a latent
  std::vector<int64_t> cuts;
};

class FitVid : public Model, public Forecaster {
 public:
  explicit FitVid(const FitVidOptions& options);

  LossOutput loss(const Clips& clips, const LossContext& context, const State& start = {}) override;
  LossOutput loss_of(const Clips& clips, const FitVidDraws& draws);  // with these instead of drawn ones

  std::string obstacle_to_chunks() const override { return "it draws latents and ends of contexts of whole clips"; }
  void check_data(const data::DataFormat& data) const override;
  void check_length(int64_t frames) const override;
  int64_t given_frames() override { return 1; }
  Forecaster* as_forecaster() override;
  Tokenizer* as_tokenizer() override;
  TokenizerPart tokenizer_part() override;
  std::string description() const override;
  std::string label() const override { return "fitvid"; }

  State start(const Clips& context, const Seeds& seeds) override;
  Forecast next(const State& state, const at::Tensor& action) override;
  State observe(const State& state, const at::Tensor& frame, const at::Tensor& action) override;
  data::ActionFormat actions() const override { return action_input_.format(); }
  bool draws() const override { return options_.stochastic || frames_->draws(); }
  int64_t clips_in(const State& state) const override;

 protected:
  // Standard normal numbers [B,z] of the latent of the next frame; `random` [B,2] has the seed of each clip and the number of its
  // frames so far.
  virtual at::Tensor latent_noise(const at::Tensor& random) const;

 private:
  double* temperature_setting() override { return frames_->temperature_setting(); }
  struct Now;

  void check(const char* operation, const Clips& clips) const;
  fitvid::Statistics statistics() const;

  // What the predictor takes: hidden [L,B,g], actions [L*B,..] after them, latents [L,B,z].
  at::Tensor step_input(const at::Tensor& hidden, const at::Tensor& actions, const at::Tensor& z) const;

  Now now_of(const State& state) const;
  State state_of(const Now& now) const;
  at::Tensor step(Now& now, const at::Tensor& action);  // [B,g], of the next frame
  void show(Now& now, const fitvid::Encoded& encoded) const;

  FitVidOptions options_;
  std::unique_ptr<fitvid::FrameSide> frames_;
  ActionInput action_input_;
  fitvid::Encoder encoder_{nullptr};
  fitvid::Decoder decoder_{nullptr};
  fitvid::GaussianMemory posterior_{nullptr}, prior_{nullptr};  // null without a latent
  fitvid::Predictor predictor_{nullptr};
};

}  // namespace convssm::models
