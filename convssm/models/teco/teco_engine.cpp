// TECO with next() compiled: plans of the core, of one pass of the prior, and of the decoder. Contexts and true frames go
// through the model itself.
#include <ATen/ATen.h>

#include "convssm/models/codes/code_model_engine.h"
#include "convssm/models/teco/teco.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {

class TecoEngine : public CodeModelEngine {
 public:
  TecoEngine(Teco& model, const EngineOptions& options)
      : CodeModelEngine(model, options),
        model_(model),
        places_(places_of(model)),
        core_(add_plan([&model](nn::FramePlan& plan) {
          const nn::Buffer x = plan.state("latent", model.options_.features, model.height_, model.width_);
          const nn::Buffer y = model.dynamics_.plan(plan, x);
          plan.copy(y, plan.state("deter", y.channels, y.height, y.width));
        })),
        prior_(add_plan([&model, count = places_](nn::FramePlan& plan) { model.prior_->plan(plan, count); })),
        decode_(add_plan([&model](nn::FramePlan& plan) {
          const nn::Buffer deter = plan.state("deter", model.dynamics_.out_channels(), model.height_, model.width_);
          const nn::Buffer latent = plan.state("latent", model.options_.features, model.height_, model.width_);
          const nn::Buffer logits = model.decoder_->plan(plan, deter, latent);
          plan.copy(logits, plan.state("logits", logits.channels, logits.height, logits.width));
        })) {}

  at::Tensor next(const at::Tensor& action) override {
    const at::NoGradGuard no_grad;
    core_->doors().at("latent").copy_(model_.hidden(state_, model_.waiting_latent(state_), action));
    run_core(action);
    const at::Tensor deter = core_->doors().at("deter");
    Teco::Place place = model_.place_of(state_, deter.size(0));
    const int64_t n = model_.height_ * model_.width_;
    prior_->doors().at("known").copy_(model_.prior_->condition(deter));
    const at::Tensor tokens =
        draft_and_revise(place.random, n, model_.prior_->hidden_token(), model_.options_.draft,
                         [&](const at::Tensor& shown, const at::Tensor& places) { return logits_at(shown, places); });
    const at::Tensor latent = model_.latent_of(tokens.view({-1, model_.height_, model_.width_}));
    decode_->doors().at("deter").copy_(deter);
    decode_->doors().at("latent").copy_(latent);
    decode_->run();
    const at::Tensor said = decode_->doors().at("logits");
    const Teco::Drawn drawn{said.argmax(1), Teco::sound_rows(said), latent};
    place.number = place.number + 1;
    state_ = model_.after_draw(core_state(state_), drawn, state_.get("codes"), place, 1);
    return model_.frames_of(drawn);
  }

 private:
  // Of the longest chunk.
  static int64_t places_of(const Teco& model) {
    const int64_t n = model.height_ * model.width_;
    const int64_t chunks = std::min({model.options_.draft.draft, model.options_.draft.revise, n});
    return (n + chunks - 1) / chunks;
  }

  // Chunks may be shorter than the plan's: their last place is then asked for again.
  at::Tensor logits_at(const at::Tensor& tokens, const at::Tensor& places) {
    prior_->doors().at("tokens").copy_(tokens);
    const at::Tensor door = prior_->doors().at("places");
    const int64_t count = places.size(1);
    door.slice(1, 0, count).copy_(places);
    if (count < places_) door.slice(1, count).copy_(places.slice(1, count - 1).expand({-1, places_ - count}));
    prior_->run();
    return prior_->doors().at("logits").squeeze(2).transpose(1, 2).slice(1, 0, count);
  }

  Teco& model_;
  int64_t places_;
  nn::WatchedPlan &core_, &prior_, &decode_;
};

std::unique_ptr<FrameEngine> Teco::compile(const EngineOptions& options) {
  if (!compiles()) return nullptr;
  const at::NoGradGuard no_grad;
  return std::make_unique<TecoEngine>(*this, options);
}

}  // namespace convssm::models
