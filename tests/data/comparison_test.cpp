// Videos side by side in one animation: what is where, and how long.
#include "convssm/data/comparison.h"

#include <gtest/gtest.h>

#include "../base/scratch_folder.h"
#include "convssm/base/error.h"
#include "convssm/io/gif.h"
#include "convssm/io/tensor.h"

namespace convssm::data {
namespace {

constexpr int kGrey = 96;  // between the pictures

at::Tensor even(int64_t frames, double value) { return at::full({frames, 1, 4, 5}, value); }

TEST(VideoTable, PutsVideosSideBySideUnderTheHeading) {
  const ScratchFolder scratch;
  const at::Tensor rising = at::arange(3).view({3, 1, 1, 1}).mul(0.5).sub(1).expand({3, 1, 4, 5});
  const auto heading = [](int64_t frame, int64_t width) {
    return io::Image{width, 2, 1, std::vector<uint8_t>(2 * width, static_cast<uint8_t>(10 + frame))};
  };
  save_table_gif({{{even(3, -1), even(3, 1), rising}}, 2, heading}, scratch.path("a.gif"));
  const at::Tensor gif = io::to_tensor(io::read_gif(scratch.path("a.gif"))).to(at::kInt).squeeze(-1);
  ASSERT_EQ(gif.sizes(), (std::vector<int64_t>{3, 2 + 8, 3 * 10 + 2 * 2}));
  const auto all = [&](int64_t k, int64_t top, int64_t left, int64_t width, int value) {
    return gif[k].slice(0, top, top == 0 ? 2 : 10).slice(1, left, left + width).eq(value).all().item<bool>();
  };
  for (int64_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(all(k, 0, 0, 34, 10 + static_cast<int>(k)));
    EXPECT_TRUE(all(k, 2, 0, 10, 0));
    EXPECT_TRUE(all(k, 2, 10, 2, kGrey));
    EXPECT_TRUE(all(k, 2, 12, 10, 255));
    EXPECT_TRUE(all(k, 2, 22, 2, kGrey));
  }
  EXPECT_TRUE(all(0, 2, 24, 10, 0));
  EXPECT_TRUE(all(2, 2, 24, 10, 128));
}

TEST(VideoTable, RefusesVideosOfDifferentLength) {
  const ScratchFolder scratch;
  EXPECT_THROW(save_table_gif({{{even(3, 0), even(2, 0)}}}, scratch.path("a.gif")), Error);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("a.gif")));
}

TEST(ComparisonGif, HasTheTruthAboveTheForecast) {
  const ScratchFolder scratch;
  save_comparison_gif({{even(2, 1), even(2, 1)}, {even(2, -1), even(2, -1)}, 1}, 5, scratch.path("a.gif"));
  const at::Tensor gif = io::to_tensor(io::read_gif(scratch.path("a.gif"))).to(at::kInt).squeeze(-1);
  ASSERT_EQ(gif.sizes(), (std::vector<int64_t>{2, 2 * 4 * 8 + 2, 2 * 5 * 8 + 2}));
  EXPECT_EQ(gif[0][0][0].item<int>(), 255);
  EXPECT_EQ(gif[0][4 * 8 + 2][0].item<int>(), 0);
}

}  // namespace
}  // namespace convssm::data
