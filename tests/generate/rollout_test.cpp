// The loop of generation with models that make one frame at a time and with ones that make several: the same frames, the same
// end, and the predictor stands where the caller ended.
#include "convssm/generate/rollout.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

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
