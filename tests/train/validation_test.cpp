// Validation scores of clips that were not measured everywhere.
#include "convssm/train/validation.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/models/toys.h"

namespace convssm::train {
namespace {

constexpr int64_t kSide = 12, kContext = 2, kFrames = 3;

// The left third is land. In the last frame of the context the lower half is in clouds.
class Sea : public data::Dataset {
 public:
  data::Clips clip(data::Split, uint64_t index, int64_t frames) const override {
    data::Clips clip{.video = at::empty({1, frames, 1, kSide, kSide})};
    clip.valid = at::ones(clip.video.sizes(), at::kBool);
    for (int64_t t = 0; t < frames; ++t) clip.video.select(1, t).fill_(0.1 * static_cast<double>(t + 1));
    clip.valid.slice(4, 0, kSide / 3).fill_(false);
    clip.valid.select(1, kContext - 1).slice(2, kSide / 2).fill_(false);
    if (index == 1) clip.valid.select(1, kContext).fill_(false);  // and one frame to forecast is dark
    clip.video.masked_fill_(clip.valid.logical_not(), 0);
    return clip;
  }
  uint64_t size(data::Split) const override { return 2; }
  int64_t longest(data::Split) const override { return kContext + kFrames; }
  data::FrameFormat format() const override { return {1, kSide, kSide}; }
  std::vector<std::string> summary() const override { return {}; }
};

// Forecasts 0.2 everywhere but on land, where it draws what it likes; gives back of frames the same.
class Drawer : public models::Model, public models::Forecaster, public models::Tokenizer {
 public:
  Drawer(double land, bool forecasts) : land_(land), forecasts_(forecasts) {
    register_parameter("nothing", at::zeros({1}));
  }
  models::LossOutput loss(const models::Clips&, const models::LossContext&, const models::State&) override {
    return {};
  }
  models::Forecaster* as_forecaster() override { return forecasts_ ? this : nullptr; }
  models::Tokenizer* as_tokenizer() override { return forecasts_ ? nullptr : this; }
  std::string description() const override { return "drawer"; }

  models::State start(const models::Clips& context, const models::Seeds&) override {
    models::State state;
    state.set("frame", frame().expand({context.batch(), 1, kSide, kSide}));
    return state;
  }
  models::Forecast next(const models::State& state, const at::Tensor&) override { return {state.get("frame"), state}; }
  models::State observe(const models::State& state, const at::Tensor&, const at::Tensor&) override { return state; }
  int64_t clips_in(const models::State& state) const override { return state.get("frame").size(0); }

  at::Tensor encode(const at::Tensor& video) override {
    return at::zeros({video.size(0), video.size(1), 1, 1}, at::kLong);
  }
  at::Tensor decode(const at::Tensor& codes) override {
    return frame().expand({codes.size(0), codes.size(1), 1, kSide, kSide});
  }
  models::CodeFormat codes() const override { return {1, 1, 1}; }
  at::Tensor embed(const at::Tensor& codes) override { return codes.unsqueeze(1).to(at::kFloat); }
  int64_t features() const override { return 1; }

 private:
  at::Tensor frame() const {
    at::Tensor x = at::full({1, kSide, kSide}, 0.2);
    x.slice(2, 0, kSide / 3).fill_(land_);
    return x;
  }

  double land_;
  bool forecasts_;
};

nlohmann::json scores_of(double land, bool forecasts) {
  Drawer model(land, forecasts);
  TrainOptions options;
  options.sample_clips = 2, options.sample_context = kContext;
  options.sample_frames = forecasts ? kFrames : kContext + kFrames;
  return validate(model, Sea(), options)->scores;
}

// PSNR of two shades of [-1,1] as they are compared, in 8 bits cut down.
double psnr(double a, double b) {
  const auto shade = [](double x) { return std::floor((x + 1) / 2 * 255) / 255; };
  return -20 * std::log10(std::abs(shade(a) - shade(b)));
}

TEST(Validation, CountsMeasuredPixelsAlone) {
  const auto scores = scores_of(0.9, true);
  EXPECT_EQ(scores, scores_of(-0.5, true));
  // Shades 0.3, 0.4, 0.5 of one clip and 0.4, 0.5 of the other.
  const auto mean = [](auto of) { return (of(0.3) + 2 * of(0.4) + 2 * of(0.5)) / 5; };
  EXPECT_NEAR(scores["psnr_f01"].get<double>(), mean([](double x) { return psnr(0.2, x); }), 1e-4);
  // The last value that was measured is 0.2 in one half and 0.1 in the other.
  const auto both = [](double x) {
    return -10 * std::log10((std::pow(10, -psnr(0.2, x) / 10) + std::pow(10, -psnr(0.1, x) / 10)) / 2);
  };
  EXPECT_NEAR(scores["copy_last.psnr_f01"].get<double>(), mean(both), 1e-4);
  EXPECT_TRUE(std::isfinite(scores["ssim_gauss11"].get<double>()));
}

TEST(Validation, OfATokenizerTakesMeasuredPixelsAlone) {
  const auto scores = scores_of(0.9, false);
  EXPECT_EQ(scores, scores_of(-0.5, false));
  EXPECT_TRUE(scores.contains("psnr_f01"));
}

}  // namespace
}  // namespace convssm::train
