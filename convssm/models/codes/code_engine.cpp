// The code model with next() compiled: one plan from the embedded codes to features, one from features to the logits of the
// next frame. Contexts and true frames go through the model itself.
#include <ATen/ATen.h>

#include "convssm/models/codes/code_model_engine.h"
#include "convssm/models/codes/code_predictor.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {

class CodeEngine : public CodeModelEngine {
 public:
  CodeEngine(CodePredictor& model, const EngineOptions& options)
      : CodeModelEngine(model, options),
        model_(model),
        core_(add_plan([&model](nn::FramePlan& plan) {
          const data::CodeFormat grid = model.codes_.format();
          const nn::CoderOptions& encoder = model.options_.encoder;
          const nn::Buffer x = plan.state("features", encoder.depths.back(), grid.height / encoder.scale(),
                                          grid.width / encoder.scale());
          const nn::Buffer logits = model.decoder_->plan(plan, model.dynamics_.plan(plan, x));
          plan.copy(logits, plan.state("logits", grid.count, grid.height, grid.width));
        })),
        encode_(add_plan([&model](nn::FramePlan& plan) {
          const data::CodeFormat grid = model.codes_.format();
          const nn::Buffer e = plan.state("embedded", model.codes_.features(), grid.height, grid.width);
          const nn::Buffer f = model.encoder_->plan(plan, e);
          plan.copy(f, plan.state("features", f.channels, f.height, f.width));
        })) {}

  at::Tensor next(const at::Tensor& action) override {
    const at::NoGradGuard no_grad;
    const at::Tensor codes = model_.waiting_codes(state_), features = core_->doors().at("features");
    encode_->doors().at("embedded").copy_(model_.codes_.embed(codes));
    encode_->run();
    features.copy_(model_.hidden(state_, encode_->doors().at("features"), action));
    run_core(action);
    CodePredictor::Place place = model_.place_of(state_, codes.size(0));
    const at::Tensor logits = core_->doors().at("logits");
    const CodePredictor::Drawn drawn{
        draw_codes(place.random, logits, model_.options_.sampling), CodePredictor::sound_rows(logits), {}};
    place.number = place.number + 1;
    state_ = model_.after_draw(core_state(state_), drawn, codes, place, 1);
    return model_.frames_of(drawn);
  }

 private:
  CodePredictor& model_;
  nn::WatchedPlan &core_, &encode_;
};

std::unique_ptr<FrameEngine> CodePredictor::compile(const EngineOptions& options) {
  if (!compiles()) return nullptr;
  const at::NoGradGuard no_grad;
  return std::make_unique<CodeEngine>(*this, options);
}

}  // namespace convssm::models
