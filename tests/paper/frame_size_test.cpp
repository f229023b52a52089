// What a layer makes of a picture that is part of a larger one. Where it never hears of the border, the size of the frame
// cannot matter: the outputs on the part and on the whole are the same there. The margin is how far in they differ.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/cores/convlstm.h"
#include "convssm/cores/convs5.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/registry.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using testing::randn;

constexpr int64_t kPictures = 5, kRows = 21, kColumns = 23;  // frames, size of the part
constexpr int64_t kWholeMargin = (kRows + 1) / 2;

at::Tensor part_of(const at::Tensor& x) { return x.slice(3, 5, 5 + kRows).slice(4, 6, 6 + kColumns).contiguous(); }

// Of [C,H,W]: 1 + the largest distance to the border of a pixel that is not zero.
int64_t margin_of(const at::Tensor& difference) {
  const at::Tensor size = std::get<0>(at::abs(difference).max(0)).contiguous();
  const auto values = size.accessor<double, 2>();
  int64_t margin = 0;
  for (int64_t h = 0; h < kRows; ++h)
    for (int64_t w = 0; w < kColumns; ++w) {
      if (values[h][w] < 1e-12) continue;
      margin = std::max(margin, 1 + std::min({h, w, kRows - 1 - h, kColumns - 1 - w}));
    }
  return margin;
}

// In every frame.
template <typename Run>
std::vector<int64_t> margins_of_a_part(const Run& run, int64_t features) {
  const at::Tensor whole = randn({kPictures, 1, features, kRows + 12, kColumns + 12}, 3);
  const at::Tensor difference = part_of(run(whole)) - run(part_of(whole));
  std::vector<int64_t> margins;
  for (int64_t k = 0; k < kPictures; ++k) margins.push_back(margin_of(difference[k][0]));
  return margins;
}

// The states stand still, so the border is heard of n (r_B + r_C) pixels in, in the first frame and in all later ones.
TEST(FrameSize, AConvS5OfPointwiseBlocksIsTheSameFarFromTheBorder) {
  torch::NoGradGuard no_grad;
  for (const auto& [kernel_b, kernel_c, layers] :
       std::vector<std::array<int64_t, 3>>{{3, 3, 1}, {3, 3, 3}, {5, 1, 2}, {1, 3, 2}, {1, 1, 2}}) {
    ConvS5 core(ConvS5Options{.features = 4,
                              .state_size = 8,
                              .layers = layers,
                              .kernel_b = kernel_b,
                              .kernel_c = kernel_c,
                              .activation_block = nn::BlockKind::half_glu});
    core->to(at::kDouble);
    const int64_t expected = layers * (kernel_b / 2 + kernel_c / 2);
    EXPECT_EQ(margins_of_a_part([&](const at::Tensor& x) { return core->forward(x).y; }, 4),
              std::vector<int64_t>(kPictures, expected))
        << kernel_b << " " << kernel_c << " " << layers;
  }
}

// Of a ConvLSTM only as long as its states have not carried the border there.
TEST(FrameSize, AConvLSTMHearsOfTheBorderFartherInWithEveryFrame) {
  torch::NoGradGuard no_grad;
  ConvLSTM core(ConvLSTMOptions{{.features = 4}});
  core->to(at::kDouble);
  EXPECT_EQ(margins_of_a_part([&](const at::Tensor& x) { return core->forward(x).y; }, 4),
            (std::vector<int64_t>{1, 2, 3, 4, 5}));
}

// The paper's ResNet blocks have group norms, whose mean and variance are those of the whole frame: nowhere the same.
TEST(FrameSize, GroupNormsHearOfTheWholeFrame) {
  torch::NoGradGuard no_grad;
  ConvS5 core(ConvS5Options{.features = 4, .state_size = 8, .groups = 2});
  core->to(at::kDouble);
  EXPECT_EQ(margins_of_a_part([&](const at::Tensor& x) { return core->forward(x).y; }, 4),
            std::vector<int64_t>(kPictures, kWholeMargin));
}

// Encoder and decoder of the pixel model have them too, so that no pixel model is quite the same, whatever its core.
TEST(FrameSize, OfPixelModelsTheCodersHearOfTheWholeFrame) {
  torch::NoGradGuard no_grad;
  const nlohmann::json coder = {{"depths", {4}}},
                       core = {
                           {"name", "convs5"}, {"features", 4}, {"state_size", 8}, {"activation_block", "half_glu"}};
  const auto forecasts = [&](const at::Tensor& video) {  // [L,B,C,H,W]
    const auto model =
        models::make_model({{"encoder", coder}, {"decoder", coder}, {"core", core}}, {1, video.size(3), video.size(4)});
    model->to(at::kDouble);
    return model->as_forecaster()->forecasts({video.transpose(0, 1).tanh()}, {}).transpose(0, 1);
  };
  EXPECT_EQ(margins_of_a_part(forecasts, 1), std::vector<int64_t>(kPictures, kWholeMargin));
}

}  // namespace
}  // namespace convssm::cores
