// The vanilla ConvRNN: its first values. Its formula and laws are tested with those of all cores.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/cores/registry.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using testing::distance;
using testing::randn;

// Small states only turn, pixel by pixel: gradients of first values neither vanish nor grow but for tanh.
TEST(ConvRNNCore, BeginsByTurningItsState) {
  torch::NoGradGuard no_grad;
  for (const int64_t kernel : {1, 2, 3}) {
    const auto core = make_core("convrnn", {{"features", 8}, {"kernel", kernel}});
    core->to(at::kDouble);
    State state;
    state.set("layers.0.h", 1e-6 * randn({1, 8, 3, 4}, 1));
    const State last = core->forward(at::zeros({100, 1, 8, 3, 4}, at::kDouble), state).state;
    const at::Tensor first = state.get("layers.0.h"), then = last.get("layers.0.h");
    EXPECT_GT(distance(first, then), 1e-7);
    EXPECT_LT(distance(then.norm(2, {1}) / first.norm(2, {1}), at::ones({1, 3, 4}, at::kDouble)), 1e-5) << kernel;
  }
}

}  // namespace
}  // namespace convssm::cores
