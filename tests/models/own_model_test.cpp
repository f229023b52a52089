// The model of the example keeps the contract of forecasters that its readers will copy.
#include <gtest/gtest.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"  // only a function of the name main may end without a return
#define main main_of_the_example
#include "examples/own_model.cpp"
#undef main
#pragma GCC diagnostic pop

#include "tests/support.h"

namespace convssm::models {
namespace {

class OwnModel : public ::testing::Test {
 protected:
  at::Tensor next(const State& state) { return model.next(state, {}).frame; }
  State start(int64_t frames) { return model.start({video.slice(1, 0, frames)}, {}); }

  TwoFrames model;
  const at::Tensor video = Rings().clip(data::Split::train, 1, 6).video.repeat({2, 1, 1, 1, 1});
};

TEST_F(OwnModel, TakesATrueFrameInPlaceOfItsForecast) {
  State seen = start(2), corrected = seen;
  for (int64_t k = 2; k < 6; ++k) {
    seen = model.observe(seen, video.select(1, k), {});
    corrected = model.observe(model.next(corrected, {}).state, video.select(1, k), {});
    EXPECT_TRUE(next(seen).equal(next(start(k + 1)))) << k;
    EXPECT_TRUE(next(corrected).equal(next(start(k + 1)))) << k;
  }
}

TEST_F(OwnModel, GoesOnFromOneFrame) {
  State state = start(1);
  EXPECT_EQ(model.clips_in(state), 2);
  EXPECT_EQ(next(state).sizes(), (at::IntArrayRef{2, 1, kSide, kSide}));
  state = model.observe(state, video.select(1, 1), {});
  EXPECT_TRUE(next(state).equal(next(start(2))));
  EXPECT_FALSE(next(state).requires_grad());
}

}  // namespace
}  // namespace convssm::models
