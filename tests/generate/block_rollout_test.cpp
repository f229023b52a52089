// Rollouts of a model that draws blocks of frames: as many together as there are actions, streamed, and stopped within a block.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/generate/predictor.h"
#include "convssm/generate/rollout.h"
#include "tests/models/latent_fdm_golden.h"

namespace convssm::generate {
namespace {

TEST(BlockRollout, StandsWhereItsCallerStoppedWithinABlock) {
  const nlohmann::json section = {{"name", "latent_fdm"},
                                  {"frames", 5},
                                  {"channels", 4},
                                  {"multipliers", {1, 2}},
                                  {"attention", {4}},
                                  {"heads", 2},
                                  {"groups", 2},
                                  {"actions", 3},
                                  {"diffusion", {{"steps", 10}}},
                                  {"sampling", {{"frames", 3}, {"steps", 2}}}};
  const auto model = testing::stirred_fdm(section, {1, 4, 4});
  const at::Tensor context = testing::randn({2, 4, 1, 4, 4}, 1).tanh();
  for (const bool with_actions : {true, false}) {
    const at::Tensor coming = with_actions ? at::arange(16).view({2, 8}).remainder(3) : at::Tensor();
    const auto action = [&](int64_t k) { return with_actions ? coming.select(1, k) : coming; };
    Predictor whole(*model, {.batch = 2});
    whole.start(data::Clips{context}, {1, 2});
    const at::Tensor all = rollout(whole, coming, 8, {});
    for (int64_t stop = 1; stop < 6; ++stop) {
      Predictor predictor(*model, {.batch = 2});
      predictor.start(data::Clips{context}, {1, 2});
      int64_t shown = 0;
      const RolloutEnd end = for_each_forecast(predictor, coming, 8, [&](const at::Tensor& frame) {
        EXPECT_LT(testing::distance(frame, all.select(1, shown)), 1e-9);
        return ++shown < stop;
      });
      EXPECT_EQ(end.frames, stop);
      for (int64_t k = stop; k < 6; ++k) {  // the rest of the block as it was; a new one is of what is known then
        if (with_actions && k % 3 == 0) break;
        EXPECT_LT(testing::distance(predictor.next_after(action(k)), all.select(1, k)), 1e-9) << stop << " " << k;
      }
    }
  }
}

}  // namespace
}  // namespace convssm::generate
