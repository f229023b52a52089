// moving-mnist: the motion against NumPy, the frames against a plain computation, and the laws of a dataset.
#include "convssm/data/moving_mnist.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "convssm/data/digits.h"
#include "idx_bytes.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;
using nlohmann::json;

std::vector<std::pair<int64_t, int64_t>> pairs(const std::vector<Offset>& trajectory) {
  std::vector<std::pair<int64_t, int64_t>> result;
  for (const Offset& offset : trajectory) result.emplace_back(offset.top, offset.left);
  return result;
}

// From a vectorized NumPy computation of the same rule: p += 0.15 v; p[p<=0]=0; p[p>=1]=1; v of those flipped.
TEST(BouncingTrajectory, AgreesWithNumPy) {
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(pairs(bouncing_trajectory(0.5, 0.5, 0.3, 0.15, 36, 24)),
            (Pairs{{19, 23}, {21, 28}, {22, 33}, {24, 36}, {25, 30}, {27, 25}, {29, 20}, {30, 15},
                   {32, 10}, {33, 5},  {35, 0},  {36, 5},  {34, 10}, {32, 15}, {31, 20}, {29, 25},
                   {28, 30}, {26, 36}, {24, 30}, {23, 25}, {21, 20}, {20, 15}, {18, 10}, {16, 5}}));
  EXPECT_EQ(pairs(bouncing_trajectory(0.99, 0.01, 5.5, 0.15, 36, 24)),
            (Pairs{{0, 36},  {3, 32}, {7, 28}, {11, 24}, {15, 20}, {19, 16}, {22, 13}, {26, 9},
                   {30, 5},  {34, 1}, {36, 0}, {32, 3},  {28, 7},  {24, 11}, {20, 15}, {16, 19},
                   {13, 22}, {9, 26}, {5, 30}, {1, 34},  {0, 36},  {3, 32},  {7, 28},  {11, 24}}));
}

TEST(BouncingTrajectory, StaysInsideForEver) {
  for (const Offset& offset : bouncing_trajectory(0.3, 0.8, 1.1, 0.15, 36, 5000)) {
    ASSERT_TRUE(offset.top >= 0 && offset.top <= 36 && offset.left >= 0 && offset.left <= 36);
  }
}

// Pixel by pixel, from the same random numbers: is any digit here, and how bright?
at::Tensor plain_clip(uint64_t seed, uint64_t index, int64_t frames, int64_t digits) {
  const auto source = drawn_digits(seed);
  auto video = at::zeros({frames, 1, 64, 64}, at::kInt);
  auto pixels = video.accessor<int, 4>();
  for (int64_t k = 0; k < digits; ++k) {
    Stream stream = Stream(seed, "moving-mnist: train", index).split("digit", static_cast<uint64_t>(k));
    const Digit digit = source->digit(Split::train, stream.below(60000));
    double p[2], v[2];  // x, y
    p[0] = stream.uniform(), p[1] = stream.uniform();
    const double angle = stream.uniform(0, 2 * M_PI);
    v[0] = std::cos(angle), v[1] = std::sin(angle);
    for (int64_t t = 0; t < frames; ++t) {
      for (int i = 0; i < 2; ++i) {
        p[i] += 0.15 * v[i];
        if (p[i] <= 0)
          p[i] = 0, v[i] = -v[i];
        else if (p[i] >= 1)
          p[i] = 1, v[i] = -v[i];
      }
      const int left = static_cast<int>(std::floor(36 * p[0])), top = static_cast<int>(std::floor(36 * p[1]));
      for (int y = 0; y < 64; ++y) {
        for (int x = 0; x < 64; ++x) {
          if (y < top || y >= top + 28 || x < left || x >= left + 28) continue;
          pixels[t][0][y][x] =
              std::max<int>(pixels[t][0][y][x], digit.pixels[static_cast<size_t>((y - top) * 28 + x - left)]);
        }
      }
    }
  }
  return video;
}

TEST(MovingMnist, FramesAgreeWithAPlainComputation) {
  const auto dataset = make_dataset({{"name", "moving-mnist"}}, 11);
  for (const uint64_t index : {0, 7, 9999}) {
    const Clips clip = dataset->clip(Split::train, index, 40);
    EXPECT_FALSE(clip.actions.defined());
    const auto expected = plain_clip(11, index, 40, 2).to(at::kDouble) * 2 / 255 - 1;
    EXPECT_LT(convssm::testing::distance(clip.video[0].to(at::kDouble), expected), 1e-7) << index;
  }
}

// Column and row of the centre of brightness of each frame, [T,2].
at::Tensor centres(const at::Tensor& video) {
  const at::Tensor ink = (video.squeeze(1).to(at::kDouble) + 1) / 2, place = at::arange(ink.size(2), at::kDouble);
  const at::Tensor all = ink.sum({1, 2});
  return at::stack({(ink.sum(1) * place).sum(1) / all, (ink.sum(2) * place).sum(1) / all}, 1);
}

TEST(MovingMnist, SubpixelDigitsMoveEvenly) {
  const json whole{{"name", "moving-mnist"}, {"digits", 1}, {"image_size", 32}, {"digit_size", 16}, {"step", 0.05}};
  json fractions = whole;
  fractions["subpixel"] = true;
  Stream stream = Stream(3, "moving-mnist: train", 8).split("digit", 0);
  stream.below(60000);
  const double x = stream.uniform(), y = stream.uniform(), angle = stream.uniform(0, 2 * M_PI);
  const auto trajectory = bouncing_trajectory(x, y, angle, 0.05, 16, 200);
  const at::Tensor jumping = centres(make_dataset(whole, 3)->clip(Split::train, 8, 200).video[0]);
  const at::Tensor smooth = centres(make_dataset(fractions, 3)->clip(Split::train, 8, 200).video[0]);
  for (int64_t t = 0; t < 200; ++t) {
    const Offset& offset = trajectory[static_cast<size_t>(t)];
    EXPECT_NEAR((smooth[t][0] - jumping[t][0]).item<double>(), offset.right, 0.02) << t;
    EXPECT_NEAR((smooth[t][1] - jumping[t][1]).item<double>(), offset.down, 0.02) << t;
  }
}

TEST(MovingMnist, ALongerClipBeginsWithTheShorterOne) {
  const auto dataset = make_dataset({{"name", "moving-mnist"}, {"digits", 3}}, 1);
  const auto longer = dataset->clip(Split::test, 5, 30).video, shorter = dataset->clip(Split::test, 5, 12).video;
  EXPECT_TRUE(at::equal(longer.slice(1, 0, 12), shorter));
}

TEST(MovingMnist, AClipDependsOnSeedSplitAndIndexAlone) {
  const json options{{"name", "moving-mnist"}, {"image_size", 32}, {"digit_size", 16}};
  const auto dataset = make_dataset(options, 1);
  std::vector<at::Tensor> alone(16), together(16);
  for (uint64_t i = 0; i < 16; ++i) alone[i] = make_dataset(options, 1)->clip(Split::train, i, 10).video;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 4; ++i) together[15 - 4 * i - t] = dataset->clip(Split::train, 15 - 4 * i - t, 10).video;
    });
  }
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < 16; ++i) EXPECT_TRUE(at::equal(alone[i], together[i])) << i;
  EXPECT_FALSE(at::equal(alone[0], alone[1]));
  EXPECT_FALSE(at::equal(alone[0], dataset->clip(Split::test, 0, 10).video));
  EXPECT_FALSE(at::equal(alone[0], make_dataset(options, 2)->clip(Split::train, 0, 10).video));
}

// Images of one file grow brighter, test images are 200: which digits a clip shows can be read from its pixels.
class MovingIdx : public ::testing::Test {
 protected:
  MovingIdx() {
    folder.write("train",
                 idx_images(6, 28, [](int image, int, int) { return image < 4 ? 100 : 100 + 25 * (image - 3); }));
    folder.write("test", idx_images(2, 28, [](int, int, int) { return 200; }));
  }
  std::set<int> brightness(const json& options, Split split) {
    const auto dataset = make_dataset(options, 3);
    std::set<int> found;
    for (uint64_t i = 0; i < 60; ++i) {
      const auto clip = dataset->clip(split, i, 2).video;
      found.insert(static_cast<int>(std::lround((clip.max().item<double>() + 1) * 127.5)));
    }
    return found;
  }
  json options(const json& more) {
    json all{{"name", "moving-mnist"}, {"digits", 1}, {"images", folder.path("train")}};
    all.update(more);
    return all;
  }
  ScratchFolder folder;
};

TEST_F(MovingIdx, SplitsAreDisjointUnlessMixed) {
  const auto expect = [this](const json& more, std::set<int> train, std::set<int> valid, std::set<int> test) {
    EXPECT_EQ(brightness(options(more), Split::train), train);
    EXPECT_EQ(brightness(options(more), Split::valid), valid);
    EXPECT_EQ(brightness(options(more), Split::test), test);
  };
  expect(json::object(), {100}, {125}, {150});
  expect({{"test_images", folder.path("test")}}, {100, 125}, {150}, {200});
  expect({{"mix_splits", true}}, {100, 125, 150}, {100, 125, 150}, {100, 125, 150});
}

// Sums of pixels with weights, as version 0.1 made these clips: a run that is trained again logs the same losses.
TEST(MovingMnist, TrainAndTestClipsAreThoseOfVersion01) {
  const auto sum = [](const Dataset& dataset, Split split, uint64_t index) {
    const at::Tensor pixels = ((dataset.clip(split, index, 5).video + 1) * 127.5).round().to(at::kLong).flatten();
    return (pixels * (at::arange(pixels.numel(), at::kLong) % 8191 + 1)).sum().item<int64_t>();
  };
  const auto plain = make_dataset({{"name", "moving-mnist"}}, 7);
  EXPECT_EQ(sum(*plain, Split::train, 0), 822101424);
  EXPECT_EQ(sum(*plain, Split::train, 513), 1265454218);
  EXPECT_EQ(sum(*plain, Split::test, 0), 1091597774);
  EXPECT_EQ(sum(*plain, Split::test, 513), 965535777);
  const auto mixed =
      make_dataset({{"name", "moving-mnist"}, {"mix_splits", true}, {"digits", 3}, {"subpixel", true}}, 7);
  EXPECT_EQ(sum(*mixed, Split::train, 0), 1276119647);
  EXPECT_EQ(sum(*mixed, Split::train, 513), 1597908668);
  EXPECT_EQ(sum(*mixed, Split::test, 0), 1695534308);
  EXPECT_EQ(sum(*mixed, Split::test, 513), 1525296424);
}

TEST(MovingMnist, ClipsOfTheSplitsDiffer) {
  for (const bool mix : {false, true}) {
    const auto dataset = make_dataset({{"name", "moving-mnist"}, {"mix_splits", mix}}, 7);
    std::vector<at::Tensor> seen;
    for (const Split split : all_splits) {
      for (uint64_t i = 0; i < 20; ++i) {
        const at::Tensor frame = dataset->clip(split, i, 1).video;
        for (const at::Tensor& other : seen) EXPECT_FALSE(frame.equal(other)) << name(split) << " " << i;
        seen.push_back(frame);
      }
    }
  }
}

TEST(MovingMnist, SizesAndFormat) {
  const auto few = make_dataset({{"name", "moving-mnist"}, {"clips", 3}, {"image_size", 40}}, 1);
  EXPECT_EQ(few->size(Split::train), 3u);
  EXPECT_EQ(few->size(Split::valid), 256u);
  EXPECT_EQ(few->size(Split::test), 1024u);
  EXPECT_EQ(few->format().height, 40);
  EXPECT_EQ(few->format().channels[0].high, 255);
  EXPECT_EQ(few->longest(Split::train), any_length);
  EXPECT_TRUE(at::equal(few->clip(Split::train, 4, 2).video, few->clip(Split::train, 1, 2).video));
  expect_error([&] { few->clip(Split::train, 0, 0); }, {"frames must be positive"});
  const auto endless = make_dataset({{"name", "moving-mnist"}, {"clips", 0}, {"image_size", 40}}, 1);
  EXPECT_EQ(endless->size(Split::train), any_count);
  EXPECT_EQ(endless->clip(Split::train, any_count - 1, 2).video.size(1), 2);
}

TEST(MovingMnist, WrongOptionsAreNamed) {
  const auto make = [](const json& options) { return [options] { make_dataset(options, 1); }; };
  expect_error(make({{"name", "moving-mnst"}}), {"did you mean 'moving-mnist'?"});
  expect_error(make({{"digits", 2}}), {"name"});
  expect_error(make({{"name", "moving-mnist"}, {"digit", 2}}), {"did you mean 'digits'?"});
  expect_error(make({{"name", "moving-mnist"}, {"digits", 0}}), {"digits must be 1 to 100, got 0"});
  expect_error(make({{"name", "moving-mnist"}, {"digit_size", 65}}), {"digit_size must be 1 to image_size, got 65"});
  expect_error(make({{"name", "moving-mnist"}, {"step", -0.1}}), {"step must be 0 to 1, got -0.1"});
  expect_error(make({{"name", "moving-mnist"}, {"images", "/nonexistent/x"}}), {"/nonexistent/x"});
}

TEST(MovingMnist, FewShapesComeAgain) {
  // A digit as large as the frame does not move: a clip shows its shape.
  const nlohmann::json options = {
      {"name", "moving-mnist"}, {"digits", 1}, {"image_size", 28}, {"digit_size", 28}, {"shapes", 3}};
  const auto dataset = make_dataset(options, 1);
  std::vector<at::Tensor> seen;
  for (uint64_t i = 0; i < 60; ++i) {
    const at::Tensor frame = dataset->clip(Split::train, i, 1).video;
    const auto same = [&](const at::Tensor& other) { return frame.equal(other); };
    if (std::none_of(seen.begin(), seen.end(), same)) seen.push_back(frame);
  }
  EXPECT_EQ(seen.size(), 3u);
}

}  // namespace
}  // namespace convssm::data
