// metrics, weights and compare as processes: lists, imports of good and bad files, scores of samples.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/safetensors.h"
#include "program.h"

namespace convssm {
namespace {

namespace fs = std::filesystem;

const std::string kAssets = CONVSSM_SOURCE_DIR "/../shared/assets";

class CliMetrics : public ::testing::Test {
 protected:
  std::string at(const std::string& name) { return "'" + folder.path(name) + "'"; }

  // Clips [n,frames,16,16,1] of bytes that grow with the frame.
  io::Array clips(int64_t n, int64_t frames, int step) {
    io::Array array(io::DType::u8, {n, frames, 16, 16, 1});
    auto values = array.values<uint8_t>();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<uint8_t>((i * 7) % 200 + static_cast<size_t>(step) * (i / 256 % frames));
    }
    return array;
  }

  ScratchFolder folder;
};

TEST_F(CliMetrics, AreListed) {
  const Outcome outcome = run("metrics --weights /nonexistent --json " + at("list.json"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"psnr_f01", "ssim_gauss11", "fvd_i3d", "OpenSTL", "needs weights: squeezenet, lpips_squeeze"}) {
    expect_contains(outcome.out, part);
  }
  const auto list = nlohmann::json::parse(read_all(folder.path("list.json")));
  std::map<std::string, bool> ready;
  for (const auto& metric : list) ready[metric["name"].get<std::string>()] = metric["ready"].get<bool>();
  EXPECT_EQ(ready.size(), 14u);
  EXPECT_TRUE(ready.at("psnr_f01"));
  EXPECT_FALSE(ready.at("fvd_i3d"));
}

TEST_F(CliMetrics, WeightsAreListedWithTheStepsToGetThem) {
  const Outcome outcome = run("weights --weights " + at("w"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.out, "in " + folder.path("w"));
  expect_contains(outcome.out, "convssm weights import i3d kinetics-i3d/data/checkpoints/rgb_scratch/model.ckpt");
}

TEST_F(CliMetrics, WeightsThatAreNotTheNetworkAreRefused) {
  const std::string data = CONVSSM_SOURCE_DIR "/tests/io/data/", to = " --weights " + at("w");
  const auto fails = [&](const std::string& what, int code, const std::vector<std::string>& parts) {
    const Outcome outcome = run("weights import " + what + to);
    EXPECT_EQ(outcome.code, code) << what << outcome.err;
    for (const std::string& part : parts) expect_contains(outcome.err, part);
  };
  fails("squeezenet " + data + "torch_module.pth", 3, {"does not hold the weights 'squeezenet'", "0.weight"});
  fails("squeezenet " + data + "torch_legacy.pth", 3, {"torch_legacy.pth", "torch.save(torch.load("});
  fails("squeezenet /nonexistent.pth", 4, {"/nonexistent.pth"});
  fails("squeeznet " + data + "torch_module.pth", 2, {"did you mean 'squeezenet'?"});
  fails("i3d " + data + "nothing", 4, {"nothing.index"});
  EXPECT_TRUE(!fs::exists(folder.path("w")) || fs::is_empty(folder.path("w")));
}

TEST_F(CliMetrics, AFileOfTheFeaturesIsTakenAndScores) {
  const std::string lpips = kAssets + "/lpips/", to = " --weights " + at("w");
  if (!fs::exists(lpips)) GTEST_SKIP() << "the published weights are not there: " << lpips;
  ASSERT_EQ(run("weights import squeezenet " + lpips + "squeezenet1_1.features.safetensors" + to).code, 0);
  ASSERT_EQ(run("weights import lpips_squeeze " + lpips + "lpips_squeeze.linear.v0_1.safetensors" + to).code, 0);
  const Outcome swapped = run("weights import lpips_alex " + lpips + "lpips_squeeze.linear.v0_1.safetensors" + to);
  EXPECT_EQ(swapped.code, 3);
  expect_contains(swapped.err, "does not hold the weights 'lpips_alex'");
  const Outcome outcome = run("compare " + lpips + "ex_ref.png " + lpips + "ex_p0.png --metrics lpips_squeeze" + to +
                              " --json " + at("scores.json"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto scores = nlohmann::json::parse(read_all(folder.path("scores.json")));
  EXPECT_NEAR(scores["clips"]["lpips_squeeze"][0].get<double>(), 0.711048, 1e-5);
  EXPECT_EQ(scores["protocol"]["metrics"]["lpips_squeeze"]["weights"]["squeezenet"].get<std::string>().size(), 16u);
}

TEST_F(CliMetrics, CompareScoresRealAgainstFake) {
  const std::vector<io::NamedArray> arrays = {{"real", clips(3, 5, 1)}, {"fake", clips(3, 5, 2)}};
  io::write_npz(folder.path("samples.npz"), arrays, true);
  const Outcome outcome = run("compare " + at("samples.npz") + " --context 1 --weights /nonexistent --json " +
                              at("s.json") + " --csv " + at("s.csv"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"3 clips, 1 frames of context", "4 frames ahead", "psnr_u8 +", "mae_sum -"}) {
    expect_contains(outcome.out, part);
  }
  expect_contains(outcome.err, "left out: fvd_i3d");
  const auto scores = nlohmann::json::parse(read_all(folder.path("s.json")));
  // Frame k differs by k levels in every one of its 256 pixels.
  EXPECT_NEAR(scores["curves"]["mae_sum"]["forecast"][2].get<double>(), 3 * 256 / 255.0, 1e-4);
  EXPECT_NEAR(scores["horizons"][0]["rows"][0]["mae_sum"]["mean"].get<double>(), 2.5 * 256 / 255.0, 1e-4);
  const std::string table = read_all(folder.path("s.csv"));
  expect_contains(table, "frame,mae_sum,mse_sum,psnr_f01");
  expect_contains(table, "\n4,");
}

TEST_F(CliMetrics, CompareExplainsMistakes) {
  const std::vector<io::NamedArray> one = {{"data", clips(3, 5, 1)}}, two = {{"data", clips(2, 5, 1)}};
  io::write_npz(folder.path("a.npz"), one);
  io::write_npz(folder.path("b.npz"), two);
  const auto fails = [&](const std::string& what, int code, const std::vector<std::string>& parts) {
    const Outcome outcome = run("compare " + what);
    EXPECT_EQ(outcome.code, code) << what << outcome.err;
    for (const std::string& part : parts) expect_contains(outcome.err, part);
  };
  fails(at("a.npz") + " " + at("b.npz"), 3, {"must be alike", "3 clips", "2 clips"});
  fails(at("a.npz"), 3, {"real"});
  io::write_npy(folder.path("clip.npy"), clips(1, 5, 1));
  fails(at("clip.npy"), 3, {"no array 'real'", "only .npz"});
  fails(at("a.npz") + " " + at("a.npz") + " --metrics ssim", 2, {"unknown metric 'ssim'"});
  fails(at("a.npz") + " " + at("a.npz") + " --metrics lpips_vgg", 2, {"32x32"});
  fails(at("a.npz") + " " + at("a.npz") + " --context 5", 2, {"0 to 4"});
  fails(at("a.npz") + " " + at("a.npz") + " --range 1", 2, {"LOW,HIGH"});
  fails(at("a.npz") + " " + at("none.npz"), 4, {"none.npz"});
  const Outcome same = run("compare " + at("a.npz") + " " + at("a.npz"));
  EXPECT_EQ(same.code, 0);
  expect_contains(same.err, "15 frames are identical");
}

}  // namespace
}  // namespace convssm
