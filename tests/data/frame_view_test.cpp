// Frames of another size, in other colours and fewer of them: against libtorch's own resizing and against arithmetic by hand.
#include "convssm/data/frame_view.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../base/scratch_folder.h"
#include "convssm/data/inspect.h"
#include "convssm/data/recording.h"
#include "episode_files.h"
#include "field_files.h"

namespace convssm::data {
namespace {

using convssm::testing::distance;
using convssm::testing::expect_error;

class FrameViews : public EpisodeTest {
 protected:
  at::Tensor seen(const at::Tensor& frames, const FrameView& view) {  // [T,C,H,W]
    return io::to_tensor(frames_in_view(view, io::to_array(frames), "file"));
  }
};

TEST_F(FrameViews, AreaIsTheMeanOfWhatIsCovered) {
  const at::Tensor x = at::rand({2, 3, 12, 8}, at::kDouble);
  EXPECT_LT(distance(seen(x, {.height = 4, .width = 2}), at::adaptive_avg_pool2d(x, {4, 2})), 1e-12);
  const at::Tensor line = at::tensor({1.0, 2.0, 4.0}).view({1, 1, 1, 3});  // thirds and sixths
  const at::Tensor two = seen(line.to(at::kDouble), {.height = 1, .width = 2});
  EXPECT_NEAR(two[0][0][0][0].item<double>(), (1 + 0.5 * 2) / 1.5, 1e-12);
  EXPECT_NEAR(two[0][0][0][1].item<double>(), (0.5 * 2 + 4) / 1.5, 1e-12);
  EXPECT_TRUE(seen(x, {.height = 12, .width = 8}).equal(x)) << "the same size changes nothing";
  EXPECT_LT(distance(seen(x, {.height = 5, .width = 3}).mean({2, 3}), x.mean({2, 3})), 1e-12) << "means stay";
}

TEST_F(FrameViews, CoordinatesAreTheMeansOfWhatIsCovered) {
  const ScratchFolder scratch;
  testing::write_fields(scratch.path("a.nc"), {.hours = testing::hours_from(0, 3)});  // 4 x 6
  FieldChoice t2m;
  t2m.variables = {"t2m"};
  const auto recording = open_recording(scratch.path("a.nc"), {.view = {.height = 2, .width = 3}, .fields = t2m});
  const Axes& axes = recording->info().axes;
  EXPECT_EQ(axes.rows.values, (std::vector<double>{57.875, 57.375}));
  EXPECT_EQ(axes.columns.values, (std::vector<double>{-9.875, -9.375, -8.875}));
  EXPECT_TRUE(axes.has_latitudes());
}

TEST_F(FrameViews, BilinearIsThatOfLibtorch) {
  const at::Tensor x = at::rand({2, 3, 7, 5}, at::kDouble);
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{14, 10}, {11, 3}, {4, 9}}) {
    const at::Tensor want = at::upsample_bilinear2d(x, {height, width}, /*align_corners=*/false);
    EXPECT_LT(distance(seen(x, {.height = height, .width = width, .resize = Resize::bilinear}), want), 1e-12) << height;
  }
}

TEST_F(FrameViews, CropsTheMiddleToTheProportions) {
  const at::Tensor x = numbers({1, 1, 6, 12});
  EXPECT_TRUE(seen(x, {.height = 6, .width = 6, .crop_center = true}).equal(x.slice(3, 3, 9)));
  const at::Tensor tall = numbers({1, 1, 12, 6});
  EXPECT_TRUE(seen(tall, {.height = 6, .width = 6, .crop_center = true}).equal(tall.slice(2, 3, 9)));
  const at::Tensor half = seen(x.to(at::kDouble), {.height = 3, .width = 3, .crop_center = true});
  EXPECT_LT(distance(half, at::avg_pool2d(x.to(at::kDouble).slice(3, 3, 9), {2, 2})), 1e-12);
}

TEST_F(FrameViews, ColoursAndTypes) {
  const at::Tensor rgb = numbers({2, 3, 4, 4});
  const at::Tensor weights = at::tensor({0.299, 0.587, 0.114}, at::kDouble).view({1, 3, 1, 1});
  const at::Tensor want = (rgb.to(at::kDouble) * weights).sum(1, true);
  const at::Tensor grey = seen(rgb, {.colour = Colour::grey});
  EXPECT_EQ(grey.scalar_type(), at::kByte);
  EXPECT_LE(distance(grey.to(at::kDouble), want), 0.5 + 1e-9);
  EXPECT_TRUE(seen(grey, {.colour = Colour::rgb}).equal(grey.expand({2, 3, 4, 4})));
  EXPECT_TRUE(seen(grey, {.colour = Colour::grey}).equal(grey));
  EXPECT_EQ(seen(rgb.to(at::kHalf), {.height = 2, .width = 2}).scalar_type(), at::kFloat);
  EXPECT_EQ(seen(rgb.to(at::kShort), {.height = 2, .width = 2}).scalar_type(), at::kShort);
  expect_error(
      [&] {
        seen(numbers({2, 5, 4, 4}), {.colour = Colour::grey});
      },
      {"'file'", "1 or 3 channels", "found 5"});
}

TEST_F(FrameViews, DatasetsTakeEveryKthFrame) {
  const at::Tensor frames = numbers({11, 8, 8, 3});
  at::Tensor values = at::arange(22, at::kFloat).view({11, 2});
  npz("a.npz", {{"video", frames}, {"actions", values}});
  const at::Tensor strided = expected(frames.permute({0, 3, 1, 2})).index({at::arange(0, 11, 4)});
  const auto last = open(with({{"stride", 4}}));
  EXPECT_EQ(last->longest(Split::train), 3);
  EXPECT_TRUE(at::equal(last->clip(Split::train, 0, 3).video[0], strided));
  EXPECT_TRUE(actions_of(*last).equal(values.index({at::arange(0, 11, 4)})));
  EXPECT_NE(text(*last).find("of 4 frames one is taken"), std::string::npos) << text(*last);
  const auto sum = open(with({{"stride", 4}, {"stride_actions", "sum"}}));
  const at::Tensor sums = actions_of(*sum);
  EXPECT_TRUE(sums[0].equal(values[0]));
  EXPECT_TRUE(sums[1].equal(values.slice(0, 1, 5).sum(0)));
  EXPECT_TRUE(sums[2].equal(values.slice(0, 5, 9).sum(0)));
  EXPECT_TRUE(sum->part(Split::train, 0, 1, 2).actions[0].equal(sums.slice(0, 1)));
  EXPECT_TRUE(sum->part(Split::train, 0, 2, 1).actions[0].equal(sums.slice(0, 2)));
  const auto taken = open(with({{"stride", 4}, {"actions_align", "taken_at"}}));
  EXPECT_TRUE(actions_of(*taken)[1].equal(values[3])) << "the last before frame 4";
  npz("a.npz", {{"video", frames}, {"actions", at::arange(11, at::kLong)}});
  EXPECT_TRUE(actions_of(*open(with({{"stride", 4}}))).equal(whole({0, 4, 8})));
  expect_refused({"a.npz", "stride_actions: sum", "use last"}, {{"stride", 4}, {"stride_actions", "sum"}});
}

TEST_F(FrameViews, DatasetsOfOtherSizes) {
  video("a.gif", numbers({4, 8, 12, 1}));
  video("b.mp4", numbers({6, 20, 30, 3}));
  const auto dataset = open(with({{"size", {4, 6}}, {"colour", "grey"}}));
  EXPECT_EQ(dataset->size(Split::train), 2u);
  EXPECT_EQ(dataset->format().height, 4);
  EXPECT_EQ(dataset->format().width, 6);
  EXPECT_EQ(dataset->format().depth(), 1);
  const at::Tensor gif = dataset->clip(Split::train, 0, 4).video[0];
  const at::Tensor want = at::avg_pool2d(numbers({4, 8, 12, 1}).permute({0, 3, 1, 2}).to(at::kDouble), {2, 2});
  EXPECT_LE(distance(gif.to(at::kDouble), want * 2 / 255 - 1), (0.5 + 1e-4) * 2 / 255);
  const Inspection found = inspect({{"path", folder.path()}, {"size", 4}, {"colour", "grey"}});
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.files[1].height, 4);
}

TEST_F(FrameViews, WrongOptions) {
  npy("a.npy", numbers({3, 8, 8}));
  const auto given = [this](const json& more) { return [this, more] { open(more); }; };
  expect_error(given({{"stride", 0}}), {"stride must be at least 1"});
  expect_error(given({{"size", {4, 4, 4}}}), {"[height, width]"});
  expect_error(given({{"size", 0}}), {"whole numbers, 1 to 16384", "got 0"});
  expect_error(given({{"size", 2.5}}), {"whole numbers", "2.5"});
  expect_error(given({{"crop_center", true}}), {"set size too"});
  expect_error(given({{"resize", "cubic"}}), {"area, bilinear", "'cubic'"});
  expect_error(given({{"colour", "gray"}}), {"keep, grey, rgb", "'gray'"});
  expect_error(given({{"colours", "grey"}}), {"colour"});
}

}  // namespace
}  // namespace convssm::data
