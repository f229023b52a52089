// The code model (the paper's DMLab models without TECO): a frozen tokenizer, encoder, any temporal core, decoder to a
// distribution of codes for each pixel of the latent frame.
//   e_t = table[codes_t],  f_t = Encoder(e_t),  deter_t = core([f_t, embedding(a_{t+1})]),  logits_{t+1} = Decoder(deter_t)
// Loss: smoothed cross-entropy, summed over the pixels of a frame, averaged over the frames that count (codes/masking.h).
// Forecasts draw every code on its own. With causal masking a frame whose action is known is forecast without a look at the
// frames that were forecast before it: the eager engine takes many of them through the core in one pass.
#pragma once

#include "convssm/models/codes/code_model.h"

namespace convssm::models {

struct CodeOptions : CodeModelOptions {
  CodeOptions();

  // From the `model` section of a config, without its `name`.
  static CodeOptions from_json(const nlohmann::json& json);
};

class CodePredictor : public CodeModel {
 public:
  explicit CodePredictor(const CodeOptions& options);

  LossOutput loss(const Clips& clips, const LossContext& context, const State& start = {}) override;
  std::string obstacle_to_chunks() const override;
  std::string obstacle_to_carrying() const override;
  std::string description() const override;
  std::string label() const override { return options_.core.value("name", "?"); }

  // The loss with what is left to chance given.
  LossOutput loss_of(const Clips& clips, const Choices& choices, const State& start = {});

  State start(const Clips& context, const Seeds& seeds) override;
  at::Tensor forecasts(const Clips& clips, const at::Tensor& coming,
                       const State& start = {}) override;  // of clips of codes
  bool feeds_itself() const override { return true; }
  bool draws() const override { return options_.sampling.draws(); }
  State observe(const State& state, const at::Tensor& frame, const at::Tensor& action) override;
  int64_t clips_in(const State& state) const override;
  std::unique_ptr<FrameEngine> compile(const EngineOptions& options) override;

  const CodeOptions& options() const { return options_; }

 private:
  friend class CodeEngine;
  double* temperature_setting() override { return options_.sampling.temperature_setting(); }
  at::Tensor features_of(const at::Tensor& codes);  // [N,h,w] -> [N,F,h,w]
  at::Tensor waiting_codes(const State& state) const;
  at::Tensor waiting_input(const State& state) override { return features_of(waiting_codes(state)); }
  Drawn draw(at::Tensor& random, const at::Tensor& y) override;
  State after_draw(const State& core, const Drawn& drawn, const at::Tensor& before, const Place& place,
                   double step_rescale) const override;
  State after(const State& core, const at::Tensor& codes, bool forecast, const Place& place,
              const ssm::Timing& timing) const;

  CodeOptions options_;
  nn::Encoder encoder_{nullptr};
  nn::Decoder decoder_{nullptr};
};

}  // namespace convssm::models
