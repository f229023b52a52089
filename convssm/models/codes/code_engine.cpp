// The code model with next() compiled: one plan from the embedded codes to features, one from features to the logits of the
// next frame. Contexts and true frames go through the model itself.
#include <ATen/ATen.h>

#include "convssm/models/codes/code_predictor.h"
#include "convssm/models/core_plan.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {

class CodeEngine : public CorePlanEngine {
 public:
  CodeEngine(CodePredictor& model, int64_t batch)
      : CorePlanEngine(model, batch), model_(model), encode_({.batch = batch}) {
    const data::CodeFormat grid = model.codes_.format();
    const nn::Buffer e = encode_.state("embedded", model.codes_.features(), grid.height, grid.width);
    const nn::Buffer f = model.encoder_->plan(encode_, e);
    encode_.copy(f, encode_.state("features", f.channels, f.height, f.width));
    encode_.finish();
    const nn::Buffer x = core_.state("features", f.channels, f.height, f.width);
    const nn::Buffer logits = model.decoder_->plan(core_, model.dynamics_.plan(core_, x));
    core_.copy(logits, core_.state("logits", grid.count, grid.height, grid.width));
    core_.finish();
  }

  at::Tensor next(const at::Tensor& action) override {
    const at::NoGradGuard no_grad;
    const at::Tensor codes = model_.waiting_codes(state_), features = core_.doors().at("features");
    encode_.doors().at("embedded").copy_(model_.codes_.embed(codes));
    encode_.run();
    features.copy_(model_.hidden(state_, encode_.doors().at("features"), action));
    run_core(model_.dynamics_.actions(), action);
    at::Tensor random = state_.get("random");
    const at::Tensor drawn = draw_codes(random, core_.doors().at("logits"), model_.options_.sampling);
    state_ = model_.after(core_state(state_), drawn, true, random, {});
    return model_.codes_.frames_of(drawn);
  }

 private:
  CodePredictor& model_;
  nn::FramePlan encode_;
};

std::unique_ptr<FrameEngine> CodePredictor::compile(const EngineOptions& options) {
  if (!compiles() || options.int8) return nullptr;
  const at::NoGradGuard no_grad;
  return std::make_unique<CodeEngine>(*this, options.batch);
}

}  // namespace convssm::models
