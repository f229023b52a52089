// The code model (the paper's DMLab models without TECO): a frozen tokenizer, encoder, any temporal core, decoder to a
// distribution of codes for each pixel of the latent frame.
//   e_t = table[codes_t],  f_t = Encoder(e_t),  deter_t = core([f_t, embedding(a_{t+1})]),  logits_{t+1} = Decoder(deter_t)
// Loss: smoothed cross-entropy, summed over the pixels of a frame, averaged over the frames that count (codes/masking.h).
// Forecasts draw every code on its own. With causal masking a frame whose action is known is forecast without a look at the
// frames that were forecast before it: all frames of a future are one pass through the core.
#pragma once

#include "convssm/models/codes/code_input.h"
#include "convssm/models/codes/code_loss.h"
#include "convssm/models/codes/masking.h"
#include "convssm/models/dynamics.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/model.h"
#include "convssm/nn/frame_coder.h"

namespace convssm::models {

struct CodeOptions {
  CodeInputOptions codes;
  nn::CoderOptions encoder{{256}, 1, 32}, decoder{{512}, 4, 32};
  nlohmann::json core = {{"name", "convs5"}, {"features", 512}, {"state_size", 512}, {"layers", 8}};
  ActionOptions actions;
  MaskingOptions masking;
  SamplingOptions sampling;
  double label_smoothing = 0.01;
  uint64_t seed = 0;  // of the initial values

  // From the `model` section of a config, without its `name`.
  static CodeOptions from_json(const nlohmann::json& json);
};

class CodePredictor : public Model, public Forecaster {
 public:
  explicit CodePredictor(const CodeOptions& options);

  LossOutput loss(const Clips& clips, const LossContext& context, const State& start = {}) override;
  std::string obstacle_to_chunks() const override;
  void check_data(const data::DataFormat& data) const override;
  void check_length(int64_t frames) const override { options_.masking.check_length(frames); }
  double pair_bytes() const override { return dynamics_.core().pair_bytes(); }
  Forecaster* as_forecaster() override { return codes_.has_frames() ? this : nullptr; }
  Tokenizer* as_tokenizer() override { return codes_.tokenizer().tokenizer; }
  TokenizerPart tokenizer_part() override { return codes_.tokenizer(); }
  std::string description() const override;
  std::string label() const override { return options_.core.value("name", "?"); }

  // The loss with what is left to chance given.
  LossOutput loss_of(const Clips& clips, const Choices& choices, const State& start = {});

  State start(const Clips& context, const Seeds& seeds) override;
  Forecast next(const State& state, const at::Tensor& action) override;
  Forecast next_frames(const State& state, const at::Tensor& actions, int64_t frames) override;
  int64_t frames_at_once(const State& state, const at::Tensor& actions) const override;
  State observe(const State& state, const at::Tensor& frame, const at::Tensor& action) override;
  data::ActionFormat actions() const override { return dynamics_.actions().format(); }
  bool draws() const override { return true; }
  int64_t clips_in(const State& state) const override;
  bool compiles() const override { return dynamics_.compiles(); }
  std::unique_ptr<FrameEngine> compile(const EngineOptions& options) override;

  const CodeOptions& options() const { return options_; }

 private:
  friend class CodeEngine;
  at::Tensor features_of(const at::Tensor& codes);  // [N,h,w] -> [N,F,h,w]
  at::Tensor waiting_codes(const State& state) const;
  // Features [B,F,h,w] of the frame that waits; hidden in rows whose action is known, if it is one to be hidden.
  at::Tensor waiting_features(const State& state, const at::Tensor& action);
  at::Tensor hidden(const State& state, const at::Tensor& features, const at::Tensor& action) const;
  bool open_loop(const at::Tensor& actions) const;
  State after(const State& core, const at::Tensor& codes, bool forecast, const at::Tensor& random,
              const ssm::Timing& timing) const;

  CodeOptions options_;
  CodeInput codes_;
  nn::Encoder encoder_{nullptr};
  Dynamics dynamics_;
  nn::Decoder decoder_{nullptr};
};

}  // namespace convssm::models
