// Samples of files against numbers computed here from the same arrays.
#include "convssm/evaluate/compare.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "convssm/evaluate/evaluate.h"
#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::evaluate {
namespace {

using testing::expect_error;

struct Samples {
  ScratchFolder scratch;
  at::Tensor real, fake;
  std::string path = scratch.path("samples.npz");

  explicit Samples(at::IntArrayRef shape) {
    at::manual_seed(3);
    real = at::randint(0, 256, shape, at::kByte);
    fake = at::randint(0, 256, shape, at::kByte);
    fake.slice(1, 0, 2).copy_(real.slice(1, 0, 2));  // context
    const std::vector<io::NamedArray> arrays = {{"real", io::to_array(real)}, {"fake", io::to_array(fake)}};
    io::write_npz(path, arrays);
  }

  nlohmann::json compare(const CompareOptions& options) const {
    data::ClipReader truth(path, {.key = "real"}), forecast(path, {.key = "fake"});
    check_alike(truth, forecast);
    const metrics::MetricSet set({}, metrics::WeightFolder("/nonexistent"), clip_size(truth, forecast));
    return evaluate::compare(truth, forecast, set, options);
  }
};

TEST(Compare, ScoresFramesBehindTheContext) {
  const Samples samples({5, 6, 16, 12, 1});
  const nlohmann::json result = samples.compare({.context = 2, .chunk = 2});
  const at::Tensor difference = (samples.real.to(at::kDouble) - samples.fake.to(at::kDouble)).slice(1, 2) / 255;
  const at::Tensor mse = difference.square().sum({2, 3, 4});  // [5,4]
  const auto& row = result["horizons"][0]["rows"][0];
  EXPECT_EQ(result["horizons"][0]["frames"], 4);
  EXPECT_NEAR(row["mse_sum"]["mean"].get<double>(), mse.mean().item<double>(), 1e-4);
  EXPECT_NEAR(row["psnr_f01"]["mean"].get<double>(), (-10 * at::log10(mse / 192)).mean().item<double>(), 1e-5);
  EXPECT_NEAR(row["psnr_u8"]["mean"].get<double>(), row["psnr_f01"]["mean"].get<double>(), 1e-5);
  const auto curve = result["curves"]["mse_sum"]["forecast"].get<std::vector<double>>();
  const auto clips = result["clips"]["mse_sum"].get<std::vector<double>>();
  ASSERT_EQ(curve.size(), 4u);
  ASSERT_EQ(clips.size(), 5u);
  EXPECT_NEAR(curve[3], mse.select(1, 3).mean().item<double>(), 1e-4);
  EXPECT_NEAR(clips[4], mse[4].mean().item<double>(), 1e-4);
  EXPECT_EQ(result["protocol"]["identical_frames"], 0);
  EXPECT_EQ(samples.compare({})["protocol"]["identical_frames"], 10);
  EXPECT_NE(table_text(result).find("ssim_uniform7"), std::string::npos);
  EXPECT_EQ(result["protocol"]["pixels"], "8 bits");
}

TEST(Compare, SaysWhichPixelsAreFloats) {
  const Samples samples({1, 3, 16, 12, 1});
  const std::vector<io::NamedArray> floats = {{"fake", io::to_array(samples.fake.to(at::kFloat) / 255)}};
  io::write_npz(samples.scratch.path("floats.npz"), floats);
  data::ClipReader truth(samples.path, {.key = "real"}), forecast(samples.scratch.path("floats.npz"), {});
  const metrics::MetricSet set({}, metrics::WeightFolder("/nonexistent"), clip_size(truth, forecast));
  EXPECT_EQ(compare(truth, forecast, set, {})["protocol"]["pixels"], "truth 8 bits, forecast float32 in [0,1]");
}

// Clips larger than what is scored at once: parts of a clip are put together again.
TEST(Compare, LargeFramesGiveTheSame) {
  const Samples samples({1, 5, 700, 800, 3});
  const nlohmann::json result = samples.compare({.context = 1});
  const at::Tensor difference = (samples.real.to(at::kDouble) - samples.fake.to(at::kDouble)).slice(1, 1) / 255;
  EXPECT_NEAR(result["horizons"][0]["rows"][0]["mae_sum"]["mean"].get<double>(),
              difference.abs().sum({2, 3, 4}).mean().item<double>(), 1);
  EXPECT_EQ(result["curves"]["frames"].size(), 4u);
}

TEST(Compare, RefusesWhatIsNotAlike) {
  const Samples a({2, 6, 16, 12, 1}), b({2, 5, 16, 12, 1});
  data::ClipReader x(a.path, {.key = "real"}), y(b.path, {.key = "fake"});
  expect_error([&] { check_alike(x, y); }, {"alike", "2 clips of 6 frames", "2 clips of 5 frames"});
  const ScratchFolder x_folder, y_folder;
  const auto write = [](const ScratchFolder& folder, const std::string& name, int64_t clips) {
    const std::vector<io::NamedArray> arrays = {{"data", io::to_array(at::zeros({clips, 2, 8, 8, 1}, at::kByte))}};
    io::write_npz(folder.path(name), arrays);
  };
  write(x_folder, "a.npz", 3), write(x_folder, "b.npz", 1);
  write(y_folder, "a.npz", 1), write(y_folder, "b.npz", 3);
  const auto check_folders = [&] {
    check_alike(data::ClipReader(x_folder.path(), {}), data::ClipReader(y_folder.path(), {}));
  };
  expect_error(check_folders, {"as many clips", "'a.npz' has 3 and 1"});
  write(y_folder, "a.npz", 3), write(y_folder, "c.npz", 1);
  std::filesystem::remove(y_folder.path("b.npz"));
  expect_error(check_folders, {"same names", "'b.npz'", "'c.npz'"});
  expect_error([&] { a.compare({.context = 6}); }, {"context must be 0 to 5 of 6 frames, got 6"});
  expect_error([&] { a.compare({.chunk = 0}); }, {"chunk", "got 0"});
}

}  // namespace
}  // namespace convssm::evaluate
