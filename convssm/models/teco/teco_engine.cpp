// TECO with next() compiled: plans of the core, of one pass of the prior, and of the decoder. Contexts and true frames go
// through the model itself.
#include <ATen/ATen.h>

#include "convssm/models/core_plan.h"
#include "convssm/models/teco/teco.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"

namespace convssm::models {

class TecoEngine : public CorePlanEngine {
 public:
  TecoEngine(Teco& model, int64_t batch)
      : CorePlanEngine(model, batch), model_(model), prior_({.batch = batch}), decode_({.batch = batch}) {
    const int64_t E = model.options_.features, h = model.height_, w = model.width_, n = h * w;
    const nn::Buffer y = model.dynamics_.plan(core_, core_.state("latent", E, h, w));
    core_.copy(y, core_.state("deter", y.channels, h, w));
    core_.finish();
    const DraftOptions& draft = model.options_.draft;
    const int64_t chunks = std::min({draft.draft, draft.revise, n});
    places_ = (n + chunks - 1) / chunks;
    model.prior_->plan(prior_, places_);
    prior_.finish();
    const nn::Buffer deter = decode_.state("deter", y.channels, h, w), latent = decode_.state("latent", E, h, w);
    const nn::Buffer logits = model.decoder_->plan(decode_, deter, latent);
    decode_.copy(logits, decode_.state("logits", logits.channels, logits.height, logits.width));
    decode_.finish();
  }

  at::Tensor next(const at::Tensor& action) override {
    const at::NoGradGuard no_grad;
    core_.doors().at("latent").copy_(model_.waiting_input(state_, action));
    run_core(model_.dynamics_.actions(), action);
    const at::Tensor deter = core_.doors().at("deter");
    at::Tensor random = state_.get("random");
    const int64_t n = model_.height_ * model_.width_;
    prior_.doors().at("known").copy_(model_.prior_->condition(deter));
    const at::Tensor tokens =
        draft_and_revise(random, n, model_.prior_->hidden_token(), model_.options_.draft,
                         [&](const at::Tensor& shown, const at::Tensor& places) { return logits_at(shown, places); });
    const at::Tensor latent = model_.latent_of(tokens.view({-1, model_.height_, model_.width_}));
    decode_.doors().at("deter").copy_(deter);
    decode_.doors().at("latent").copy_(latent);
    decode_.run();
    const at::Tensor codes = decode_.doors().at("logits").argmax(1), before = state_.get("codes");
    state_ = model_.after(core_state(state_), latent, codes, true, random, {});
    state_.set("codes_before", before);
    return model_.codes_.frames_of(codes);
  }

 private:
  // Chunks may be a token shorter than the plan's: its last place is then asked for twice.
  at::Tensor logits_at(const at::Tensor& tokens, const at::Tensor& places) {
    prior_.doors().at("tokens").copy_(tokens);
    const at::Tensor door = prior_.doors().at("places");
    const int64_t count = places.size(1);
    door.slice(1, 0, count).copy_(places);
    if (count < places_) door.slice(1, count).copy_(places.slice(1, count - 1).expand({-1, places_ - count}));
    prior_.run();
    return prior_.doors().at("logits").squeeze(2).transpose(1, 2).slice(1, 0, count);
  }

  Teco& model_;
  nn::FramePlan prior_, decode_;
  int64_t places_ = 0;
};

std::unique_ptr<FrameEngine> Teco::compile(const EngineOptions& options) {
  if (!compiles() || options.int8) return nullptr;
  const at::NoGradGuard no_grad;
  return std::make_unique<TecoEngine>(*this, options.batch);
}

}  // namespace convssm::models
