// How far one pixel of one frame reaches. Two inputs that differ in one place are run and the outputs compared: the
// farthest pixel that differs, in rows or columns, is the radius.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/cores/convlstm.h"
#include "convssm/cores/convs5.h"
#include "tests/ssm/models.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using testing::randn;

constexpr double kRounding = 1e-12;  // what differs by less is equal
constexpr int64_t kFrames = 5;

// Of the pixels of [C,H,W] that are not zero, the largest distance to the column-and-row nearest of the places.
int64_t support_radius(const at::Tensor& difference, const std::vector<std::array<int64_t, 2>>& places) {
  const at::Tensor size = std::get<0>(at::abs(difference).max(0)).contiguous();
  const auto values = size.accessor<double, 2>();
  int64_t radius = -1;
  for (int64_t h = 0; h < size.size(0); ++h)
    for (int64_t w = 0; w < size.size(1); ++w) {
      if (values[h][w] < kRounding) continue;
      int64_t nearest = size.size(0) + size.size(1);
      for (const auto& [row, column] : places)
        nearest = std::min(nearest, std::max(std::abs(h - row), std::abs(w - column)));
      radius = std::max(radius, nearest);
    }
  return radius;
}

// The radius in every frame after a change of the middle pixel of frame 0.
template <typename Run>
std::vector<int64_t> radii_of_a_change(const Run& run, int64_t features, int64_t size) {
  const at::Tensor x = randn({kFrames, 1, features, size, size}, 3), changed = x.clone();
  changed[0][0].select(2, size / 2).select(1, size / 2).add_(1);
  const at::Tensor difference = run(changed) - run(x);
  std::vector<int64_t> radii;
  for (int64_t k = 0; k < kFrames; ++k) radii.push_back(support_radius(difference[k][0], {{size / 2, size / 2}}));
  return radii;
}

// Section 3.2: with pointwise state kernels the receptive field grows in the direction of depth, not of time. The block
// `half_glu` is pointwise, so n layers reach n (r_B + r_C), at the frame of the change and at all later ones.
TEST(ReceptiveField, GrowsWithDepthAndNotWithTime) {
  torch::NoGradGuard no_grad;
  for (const auto& [kernel_b, kernel_c] : std::vector<std::array<int64_t, 2>>{{3, 3}, {5, 1}, {1, 3}, {1, 1}}) {
    for (int64_t layers = 1; layers <= 3; ++layers) {
      ConvS5 core(ConvS5Options{.features = 4,
                                .state_size = 8,
                                .layers = layers,
                                .kernel_b = kernel_b,
                                .kernel_c = kernel_c,
                                .activation_block = nn::BlockKind::half_glu});
      core->to(at::kDouble);
      const int64_t expected = layers * (kernel_b / 2 + kernel_c / 2);
      const auto run = [&](const at::Tensor& x) { return core->forward(x).y; };
      EXPECT_EQ(radii_of_a_change(run, 4, 17), std::vector<int64_t>(kFrames, expected))
          << kernel_b << " " << kernel_c << " " << layers;
    }
  }
}

// The radius of the convolutions in every frame, whatever the group norms in the block do: their statistics are over the
// whole frame, so one changed pixel changes all. An impulse at one of two places instead leaves all statistics as they
// are (what surrounds it is the same at both places), and the outputs differ around the two places alone.
std::vector<int64_t> radii_of_a_move(ConvS5& core, int64_t features, int64_t reach) {
  const int64_t row = 2 * reach + 1, first = 2 * reach + 1, second = first + 2 * reach + 3;
  const at::Tensor level = randn({kFrames, 1, features, 1, 1}, 4);
  const at::Tensor x = level.expand({kFrames, 1, features, 2 * row + 1, second + first + 1}).clone(), moved = x.clone();
  const at::Tensor impulse = randn({features}, 5);
  x[0][0].select(2, first).select(1, row).add_(impulse);
  moved[0][0].select(2, second).select(1, row).add_(impulse);
  const at::Tensor difference = core->forward(moved).y - core->forward(x).y;
  std::vector<int64_t> radii;
  for (int64_t k = 0; k < kFrames; ++k)
    radii.push_back(support_radius(difference[k][0], {{row, first}, {row, second}}));
  return radii;
}

// The same with the paper's ResNet blocks, whose two convolutions reach 2 r_D farther: n (r_B + r_C + 2 r_D).
TEST(ReceptiveField, OfResNetBlocksIsThatOfTheirConvolutions) {
  torch::NoGradGuard no_grad;
  struct Case {
    nn::BlockKind block;
    int64_t kernel_d, layers, block_radius;
  };
  for (const Case& c : {Case{nn::BlockKind::resnet, 3, 1, 2}, Case{nn::BlockKind::resnet, 3, 2, 2},
                        Case{nn::BlockKind::resnet, 5, 1, 4}, Case{nn::BlockKind::diag_resnet, 3, 2, 1}}) {
    ConvS5 core(ConvS5Options{.features = 4,
                              .state_size = 8,
                              .layers = c.layers,
                              .kernel_d = c.kernel_d,
                              .activation_block = c.block,
                              .groups = 2});
    core->to(at::kDouble);
    const int64_t expected = c.layers * (1 + 1 + c.block_radius);
    EXPECT_EQ(radii_of_a_move(core, 4, expected), std::vector<int64_t>(kFrames, expected))
        << nn::name(c.block) << " " << c.kernel_d << " " << c.layers;
  }
}

// A group norm takes its statistics from the whole frame: through it one pixel is heard of everywhere.
TEST(ReceptiveField, OfAGroupNormIsTheWholeFrame) {
  torch::NoGradGuard no_grad;
  ConvS5 core(ConvS5Options{.features = 4, .state_size = 8, .groups = 2});
  core->to(at::kDouble);
  const auto run = [&](const at::Tensor& x) { return core->forward(x).y; };
  EXPECT_EQ(radii_of_a_change(run, 4, 17), std::vector<int64_t>(kFrames, 8));
}

// Section 3.2: with wider state kernels the receptive field grows in the direction of time, r_A per frame; a ConvLSTM's
// does too.
TEST(ReceptiveField, OfWideStateKernelsGrowsWithTime) {
  torch::NoGradGuard no_grad;
  auto options = testing::small(3, ssm::Boundary::zero);
  options.kernel_b = 5;
  options.kernel_c = 1;
  auto wide = testing::make(options);
  EXPECT_EQ(radii_of_a_change([&](const at::Tensor& x) { return wide->forward(x).first; }, options.features, 17),
            (std::vector<int64_t>{2, 3, 4, 5, 6}));
  ConvLSTM lstm(ConvLSTMOptions{{.features = 4}});
  lstm->to(at::kDouble);
  EXPECT_EQ(radii_of_a_change([&](const at::Tensor& x) { return lstm->forward(x).y; }, 4, 17),
            (std::vector<int64_t>{1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace convssm::cores
