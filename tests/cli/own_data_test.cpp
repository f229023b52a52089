// A user's own recordings from the first look to the scores, as a process, and what goes wrong on the way.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "program.h"
#include "tiny_run.h"

namespace convssm {
namespace {

namespace fs = std::filesystem;

class OwnData : public ::testing::Test {
 protected:
  std::string at(const std::string& name) { return "'" + folder.path(name) + "'"; }

  // A bright row that moves down, [frames, 12, 12] in 0 to 1.
  static std::vector<float> wave(int64_t frames) {
    std::vector<float> values;
    for (int64_t t = 0; t < frames; ++t) {
      for (int64_t i = 0; i < 144; ++i) values.push_back(i / 12 == t % 12 ? 1.0f : 0.25f);
    }
    return values;
  }
  void write_wave(const std::string& name, int64_t frames, std::pair<size_t, float> changed = {0, 0.25f}) {
    std::vector<float> values = wave(frames);
    values[changed.first] = changed.second;
    io::write_npy(folder.path(name), io::make_array({frames, 12, 12}, values));
  }
  void write_config(const std::string& data) {
    const std::string tiny = tiny_config();
    const size_t begin = tiny.find("data:"), end = tiny.find('\n', begin);
    write_text(folder.path("own.yaml"), tiny.substr(0, begin) + data + tiny.substr(end));
  }
  Outcome train(const std::string& more = "") {
    return run("train " + at("own.yaml") + " --run " + at("run") + " " + more, "OMP_NUM_THREADS=1");
  }
  ScratchFolder folder;
};

TEST_F(OwnData, BadValuesAreFoundBeforeTheFirstStepAndTheFolderStaysFree) {
  write_wave("a.npy", 100, {99 * 144 + 5 * 12 + 7, NAN});  // the last frame, which training may never see
  write_config("data: {name: folder, path: " + folder.path("a.npy") + ", low: 0, high: 1}");
  const Outcome bad = train();
  EXPECT_EQ(bad.code, 3) << bad.err;
  expect_contains(bad.err, "a.npy' clip 0, frame 99, channel 0, row 5, column 7: the value is nan");
  EXPECT_EQ(bad.err.find("steps of"), std::string::npos) << "it began to train";
  write_wave("a.npy", 100, {0, 1.5f});
  expect_contains(train().err, "frame 0, channel 0, row 0, column 0: the value 1.5 is outside of low 0 to high 1");
  write_wave("a.npy", 100);
  const Outcome good = train();
  EXPECT_EQ(good.code, 0) << good.err;
}

// A run without a checkpoint has nothing to lose: another model or other data may take its folder, with --resume too.
TEST_F(OwnData, ARunThatFailedOnItsFirstBatchDoesNotBlockItsFolder) {
  write_wave("a.npy", 100);
  write_config("data: {name: folder, path: " + folder.path("a.npy") + "}");
  fs::create_directories(folder.path("run"));
  write_text(folder.path("run/config.yaml"), read_all(folder.path("own.yaml")));
  const Outcome other = train("--resume model.core.layers=2");
  EXPECT_EQ(other.code, 0) << other.err;
}

TEST_F(OwnData, ClipsTooShortAreNamedAndLeftOutByChoice) {
  fs::create_directory(folder.path("d"));
  for (const char* name : {"d/a.npy", "d/b.npy", "d/c.npy", "d/e.npy"}) write_wave(name, 20);
  write_wave("d/short.npy", 3);
  write_config("data: {name: folder, path: " + folder.path("d") + "}");
  const Outcome refused = train("data.test_fraction=0 data.valid_fraction=0");
  EXPECT_EQ(refused.code, 2);
  expect_contains(refused.err, "short.npy' clip 0 has 3 frames; 1 of 5 train clips are too short");
  expect_contains(refused.err, "data.min_frames=6 leaves them out");
  const Outcome left = train("data.min_frames=6 train.sample_interval=0");
  EXPECT_EQ(left.code, 0) << left.err;
  expect_contains(left.err, "clips of fewer than 6 frames are left out, in 1 of 5 files: 'short.npy' (3)");
}

// From a file to scores with nothing but what the program prints.
TEST_F(OwnData, TheConfigOfInspectTrainsAndIsScoredOnManyWindows) {
  write_wave("a.npy", 400);
  const Outcome looked = run("data inspect " + at("a.npy") + " --config " + at("own.yaml"));
  ASSERT_EQ(looked.code, 0) << looked.err;
  expect_contains(looked.out, "convssm train " + folder.path("own.yaml"));
  EXPECT_EQ(run("data inspect " + at("a.npy") + " --config " + at("own.yaml")).code, 2) << "it is written once";
  expect_contains(run("data inspect " + at("a.npy")).out, "self_feed: 0.5");
  const Outcome trained = train("train.steps=4e0 train.warmup=1 train.batch=1");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome scored =
      run("evaluate " + at("run") + " evaluate.context=3 evaluate.horizons=[2]", "OMP_NUM_THREADS=1");
  ASSERT_EQ(scored.code, 0) << scored.err;
  expect_contains(scored.out, "8 windows of 1 clip, 3 frames of context");
  EXPECT_EQ(scored.out.find("±"), std::string::npos) << scored.out;
}

// The row that moves: a copy of the last frame is wrong in two rows of twelve, by 0.75.
TEST_F(OwnData, ValuesThatAreNoPicturesAreScoredInTheirUnits) {
  fs::create_directory(folder.path("clips"));
  for (const char* name : {"clips/a.npy", "clips/b.npy", "clips/c.npy", "clips/d.npy"}) write_wave(name, 40);
  write_config("data: {name: folder, path: " + folder.path("clips") + ", low: 0, high: 1}");
  ASSERT_EQ(train().code, 0);
  const Outcome scored = run("evaluate " + at("run") + " 'evaluate.thresholds={channel 0: [0.5]}'");
  ASSERT_EQ(scored.code, 0) << scored.err;
  for (const char* part :
       {"in the units of the data", "channel 0, to 8 ahead", "rmse -", "csi >= 0.5 +", "fss 3 px >= 0.5"}) {
    expect_contains(scored.out, part);
  }
  expect_contains(scored.err, "left out: climatology: nobody knows when the frames were taken");
  expect_contains(scored.err, "left out: advection: frames of 12 x 12 are too small");
  const auto metrics = nlohmann::json::parse(read_text(folder.path("run/metrics.json")));
  const auto& copy = metrics["skill"]["horizons"][1]["rows"][1];
  EXPECT_EQ(copy["name"], "copy last frame");
  EXPECT_NEAR(copy["variables"]["channel 0"]["rmse"].get<double>(), std::sqrt(2.0 / 12) * 0.75, 1e-5);
  EXPECT_EQ(copy["variables"]["channel 0"]["events"][0]["csi"], 0);
  EXPECT_TRUE(fs::exists(folder.path("run/samples/error-map-1.png")));
  expect_contains(read_text(folder.path("run/report.html")), "alt=\"error-map-1.png\"");
  const Outcome off = run("evaluate " + at("run") + " evaluate.skill=off evaluate.metrics=[mse_openstl]");
  EXPECT_EQ(off.out.find("in the units of the data"), std::string::npos);
  expect_contains(off.out, "mse_openstl");
  EXPECT_FALSE(fs::exists(folder.path("run/samples/error-map-1.png")));  // of the evaluation before
  const Outcome wrong = run("evaluate " + at("run") + " 'evaluate.thresholds={rain: [0.5]}'");
  EXPECT_EQ(wrong.code, 2);
  expect_contains(wrong.err, "thresholds of an unknown channel");
}

}  // namespace
}  // namespace convssm
