// Small models that have what the first real ones do not: random futures, two players, running buffers, codes. The laws
// are tested on them, where every number can be followed.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "convssm/models/clip_random.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/model.h"
#include "convssm/models/tokenizer.h"

namespace convssm::testing {

using models::Clips;
using models::LossContext;
using models::LossOutput;
using models::State;

// A loss with a running average, as batch norm and codebooks have.
class CountingModel : public models::Model {
 public:
  CountingModel() {
    weight_ = register_parameter("weight", at::ones({1}));
    count_ = register_buffer("count", at::zeros({1}));
  }
  LossOutput loss(const Clips& clips, const LossContext&, const State& = {}) override {
    count_.add_(1);
    return {(weight_ * clips.video.mean() - 1).square().sum(), {}, {}};
  }
  std::string description() const override { return "counting model"; }
  at::Tensor count() const { return count_; }

 private:
  at::Tensor weight_, count_;
};

// Every pixel of the next frame is one of three shades, drawn from a categorical whose logits depend on the last frame.
// State: `frame`, and `random`, the position of each clip.
class DrawingModel : public models::Model, public models::Forecaster {
 public:
  DrawingModel() {
    table_ = register_parameter("table", torch::tensor({{1.0, 0.2, -0.5}, {0.1, 0.9, 0.3}, {-0.3, 0.0, 0.8}}));
  }

  LossOutput loss(const Clips& clips, const LossContext&, const State& = {}) override {
    const at::Tensor logits = this->logits(clips.video.slice(1, 0, clips.frames() - 1));
    const at::Tensor shades = shade_of(clips.video.slice(1, 1));
    return {at::nll_loss(at::log_softmax(logits, -1).flatten(0, -2), shades.flatten()), {}, {}};
  }
  std::string obstacle_to_chunks() const override { return ""; }
  models::Forecaster* as_forecaster() override { return this; }
  std::string description() const override { return "drawing model"; }

  State start(const Clips& context, const models::Seeds& seeds) override {
    State state;
    state.set("frame", context.video.select(1, context.frames() - 1).clone());
    state.set("random", models::first_position(seeds, context.batch()));
    return state;
  }
  models::Forecast next(const State& state, const at::Tensor& action) override {
    at::NoGradGuard no_grad;
    at::Tensor random = state.get("random"), logits = this->logits(state.get("frame"));
    if (action.defined()) logits = logits + action.view({-1, 1, 1, 1, 1}) * at::arange(3);
    const at::Tensor drawn = models::draw_category(random, at::softmax(logits, -1)) - 1;
    State after;
    after.set("frame", drawn.to(at::kFloat));
    after.set("random", random);
    return {after.get("frame"), after};
  }
  State observe(const State& state, const at::Tensor& frame, const at::Tensor&) override {
    State after = state;
    after.set("frame", frame.clone());
    return after;
  }
  bool draws() const override { return true; }
  int64_t clips_in(const State& state) const override { return state.get("frame").size(0); }

 private:
  static at::Tensor shade_of(const at::Tensor& frames) { return frames.round().to(at::kLong).clamp(-1, 1) + 1; }
  at::Tensor logits(const at::Tensor& frames) const { return at::embedding(table_, shade_of(frames)); }

  at::Tensor table_;
};

// A generator that makes frames out of noise, against a discriminator: two players on one model, with a running buffer.
class PairModel : public models::Model {
 public:
  PairModel() {
    generator_ = register_parameter("generator", at::full({4, 4}, 0.1));
    scale_ = register_parameter("scale", at::full({1}, 0.5));
    discriminator_ = register_parameter("discriminator", at::full({4, 4}, 0.05));
    unused_ = register_parameter("unused", at::ones({2}));
    mean_ = register_buffer("mean", at::zeros({4, 4}));
  }
  std::vector<models::Player> players() const override {
    return {{"generator", {{"generator", generator_}, {"scale", scale_}}},
            {"discriminator", {{"discriminator", discriminator_}}}};
  }
  LossOutput loss(const Clips& clips, const LossContext& context, const State& = {}) override {
    const at::Tensor real = clips.video.flatten(0, 2);  // [n,4,4]
    mean_.mul_(0.9).add_(real.mean(0).detach(), 0.1);
    Stream random = context.random;
    at::Tensor noise = at::empty(real.sizes());
    for (int64_t i = 0; i < noise.numel(); ++i) noise.data_ptr<float>()[i] = static_cast<float>(random.normal());
    const at::Tensor fake = at::tanh(generator_ + scale_ * noise);
    const auto judge = [&](const at::Tensor& x) { return (x * discriminator_).sum({1, 2}); };
    if (context.player == "generator") {
      const at::Tensor fooled = at::softplus(-judge(fake)).mean(), close = (fake.mean(0) - mean_).square().mean();
      return {fooled + close, {{"fooled", fooled.detach()}, {"close", close.detach()}}, {}};
    }
    const at::Tensor hit = at::softplus(judge(fake.detach())).mean() + at::softplus(-judge(real)).mean();
    return {hit, {{"hit", hit.detach()}}, {}};
  }
  std::string description() const override { return "generator and discriminator"; }

 private:
  at::Tensor generator_, scale_, discriminator_, unused_, mean_;
};

// The mean of each 2x2 patch in 16 steps.
class PatchTokenizer : public models::Tokenizer {
 public:
  at::Tensor encode(const at::Tensor& video) override {
    const at::Tensor means = at::avg_pool2d(video.mean(2), 2);
    return ((means + 1) * 8).floor().clamp(0, 15).to(at::kLong);
  }
  at::Tensor decode(const at::Tensor& codes) override {
    const at::Tensor means = (codes.to(at::kFloat) + 0.5) / 8 - 1;
    return means.unsqueeze(2).repeat_interleave(2, 3).repeat_interleave(2, 4);
  }
  models::CodeFormat codes() const override { return {16, 2, 2}; }
  at::Tensor embed(const at::Tensor& codes) override { return codes.unsqueeze(1).to(at::kFloat) / 8 - 1; }
  int64_t features() const override { return 1; }
};

}  // namespace convssm::testing
