// The loop of generation with models that make one frame at a time and with ones that make several: the same frames, the same
// end, and the predictor stands where the caller ended.
#include "convssm/generate/rollout.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "convssm/models/registry.h"
#include "tests/support.h"

namespace convssm::generate {
namespace {

// Frame k is full of k; from `bad` on it is NaN.
class CountingForecaster : public models::Model, public models::Forecaster {
 public:
  CountingForecaster(int64_t together, int64_t bad) : together_(together), bad_(bad) {
    register_parameter("weight", at::ones({1}));
  }
  models::LossOutput loss(const models::Clips&, const models::LossContext&, const models::State&) override {
    return {};
  }
  std::string description() const override { return "counting"; }
  models::Forecaster* as_forecaster() override { return this; }
  models::State start(const models::Clips& context, const models::Seeds&) override {
    models::State state;
    state.set("number", at::zeros({context.batch()}));
    return state;
  }
  models::Forecast next(const models::State& state, const at::Tensor&) override {
    ++calls;
    const at::Tensor number = state.get("number") + 1;
    models::State after;
    after.set("number", number);
    const at::Tensor shown = number[0].item<double>() >= static_cast<double>(bad_) ? number * NAN : number;
    return {shown.view({-1, 1, 1, 1}).clone(), after};
  }
  int64_t frames_at_once(const models::State&, const at::Tensor&) const override { return together_; }
  models::State observe(const models::State& state, const at::Tensor&, const at::Tensor&) override { return state; }
  int64_t clips_in(const models::State& state) const override { return state.get("number").size(0); }

  int calls = 0;

 private:
  int64_t together_, bad_;
};

struct Counted {
  std::vector<double> frames;
  RolloutEnd end;
  double standing;  // the number that the predictor stands at
};

Counted counted(int64_t together, int64_t frames, int64_t stop, int64_t bad) {
  CountingForecaster model(together, bad);
  Predictor predictor(model, {.batch = 2});
  predictor.start({at::zeros({2, 1, 1, 1, 1})});
  Counted out;
  out.end = for_each_forecast(predictor, {}, frames, [&](const at::Tensor& frame) {
    out.frames.push_back(frame.mean().item<double>());
    return static_cast<int64_t>(out.frames.size()) < stop;
  });
  out.standing = predictor.state().get("number")[0].item<double>();
  return out;
}

TEST(Rollout, FramesTogetherAreTheSameRollout) {
  for (const int64_t together : {1, 3, 4, 50}) {
    const Counted out = counted(together, 7, 100, 100);
    EXPECT_EQ(out.frames, (std::vector<double>{1, 2, 3, 4, 5, 6, 7})) << together;
    EXPECT_EQ(out.end.frames, 7);
    EXPECT_FALSE(out.end.diverged);
    EXPECT_EQ(out.standing, 7) << together;
  }
}

// A rollout with intervals is what the model makes of its own frames, taken at these.
TEST(Rollout, TellsTheModelTheIntervals) {
  const nlohmann::json coder = {{"depths", {4, 8}}};
  const nlohmann::json core = {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}};
  const auto model = models::make_model({{"encoder", coder}, {"decoder", coder}, {"core", core}}, {1, 8, 8});
  model->eval();
  at::NoGradGuard no_grad;
  const at::Tensor video = testing::randn({2, 3, 1, 8, 8}, 4).to(at::kFloat).tanh();
  const at::Tensor dt = at::tensor({1.0f, 1.5f, 1.0f, 2.0f, 0.5f, 1.0f}).expand({2, 6}).contiguous();
  const auto future = [&](const at::Tensor& coming) {
    Predictor predictor(*model, {.batch = 2, .compile = false});
    data::Clips context{video};
    context.timing.dt = dt.slice(1, 0, 3);
    predictor.start(context);
    return rollout(predictor, {}, 3, {}, coming);
  };
  const at::Tensor found = future(dt.slice(1, 3));
  data::Clips all{at::cat({video, found}, 1)};
  all.timing.dt = dt;
  const at::Tensor forecasts = model->as_forecaster()->forecasts(all, {});
  EXPECT_LT(testing::distance(forecasts.slice(1, 2, 5), found), 1e-5);
  EXPECT_GT(testing::distance(future({}).slice(1, 1), found.slice(1, 1)), 1e-3);
  EXPECT_TRUE(future(at::ones({2, 3})).allclose(future({}), 1e-5, 1e-5));
}

TEST(Rollout, StandsWhereTheCallerEnded) {
  for (const int64_t together : {1, 3, 4, 50}) {
    for (const int64_t stop : {1, 3, 4, 6}) {
      const Counted out = counted(together, 7, stop, 100);
      EXPECT_EQ(out.end.frames, stop) << together;
      EXPECT_FALSE(out.end.diverged);
      EXPECT_EQ(out.standing, static_cast<double>(stop)) << together;
    }
  }
}

TEST(Rollout, EndsBeforeAFrameThatIsNoNumber) {
  for (const int64_t together : {1, 3, 50}) {
    for (const int64_t bad : {1, 2, 4, 5}) {
      const Counted out = counted(together, 7, 100, bad);
      EXPECT_TRUE(out.end.diverged) << together << " " << bad;
      EXPECT_EQ(out.end.frames, bad - 1) << together << " " << bad;
      EXPECT_EQ(static_cast<int64_t>(out.frames.size()), bad - 1);
    }
    CountingForecaster model(together, 3);
    Predictor predictor(model, {.batch = 1});
    predictor.start({at::zeros({1, 1, 1, 1, 1})});
    testing::expect_error([&] { rollout(predictor, {}, 5); }, {"NaN"});
  }
}

}  // namespace
}  // namespace convssm::generate
