// The code model with next() compiled: one plan from the embedded codes to features, one from features to the logits of the
// next frame. Contexts and true frames go through the model itself.
#include <ATen/ATen.h>

#include "convssm/models/codes/code_predictor.h"
#include "convssm/models/core_plan.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {

class CodeEngine : public FrameEngine {
 public:
  CodeEngine(CodePredictor& model, int64_t batch)
      : model_(model), encode_({.batch = batch}), predict_({.batch = batch}) {
    const data::CodeFormat grid = model.codes_.format();
    const nn::Buffer e = encode_.state("embedded", model.codes_.features(), grid.height, grid.width);
    const nn::Buffer f = model.encoder_->plan(encode_, e);
    encode_.copy(f, encode_.state("features", f.channels, f.height, f.width));
    encode_.finish();
    const nn::Buffer x = predict_.state("features", f.channels, f.height, f.width);
    const nn::Buffer logits = model.decoder_->plan(predict_, model.dynamics_.plan(predict_, x));
    predict_.copy(logits, predict_.state("logits", grid.count, grid.height, grid.width));
    predict_.finish();
  }

  bool empty() const override { return state_.empty(); }
  void start(const Clips& context, const Seeds& seeds) override { load(model_.start(context, seeds)); }
  void observe(const at::Tensor& frame, const at::Tensor& action) override {
    load(state_.empty() ? model_.start({frame.unsqueeze(1)}, {}) : model_.observe(save(), frame, action));
  }

  void load(const State& state) override {
    const at::NoGradGuard no_grad;
    const int64_t B = model_.clips_in(state);
    ops::require("engine", B == predict_.batch(), "the engine runs {} clips side by side, the state holds {}",
                 predict_.batch(), B);
    refuse_times(state, B);
    load_core(predict_, state);
    state_ = state;
  }

  State save() const override {
    const at::NoGradGuard no_grad;
    State state = state_;
    if (started_) save_core(predict_, state);
    return state;
  }

  at::Tensor next(const at::Tensor& action) override {
    const at::NoGradGuard no_grad;
    const at::Tensor codes = model_.waiting_codes(state_), features = predict_.doors().at("features");
    encode_.doors().at("embedded").copy_(model_.codes_.embed(codes));
    encode_.run();
    features.copy_(model_.hidden(state_, encode_.doors().at("features"), action));
    set_action(predict_, model_.dynamics_.actions(), action);
    predict_.run();
    started_ = true;
    at::Tensor random = state_.get("random");
    const at::Tensor drawn = draw_codes(random, predict_.doors().at("logits"), model_.options_.sampling);
    state_ = model_.after(core_state(state_), drawn, true, random, {});
    return model_.codes_.frames_of(drawn);
  }

 private:
  CodePredictor& model_;
  nn::FramePlan encode_, predict_;
  State state_;  // what waits; the states of the core are in the plan once it has run
  bool started_ = false;
};

std::unique_ptr<FrameEngine> CodePredictor::compile(const EngineOptions& options) {
  if (!compiles() || options.int8) return nullptr;
  const at::NoGradGuard no_grad;
  return std::make_unique<CodeEngine>(*this, options.batch);
}

}  // namespace convssm::models
