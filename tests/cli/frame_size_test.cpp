// evaluate and generate on frames of another size than those of training, as a user does it.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "convssm/io/npy.h"
#include "convssm/io/png.h"
#include "program.h"
#include "tiny_run.h"

namespace convssm {
namespace {

// A run on frames of 12 x 12, and clips of 18 x 18.
class FrameSizeProcess : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new ScratchFolder();
    write_text(path("tiny.yaml"), tiny_config());
    train("run", "");
    const Outcome made = run("data make " + path("clips.npy") +
                             " digits=1 image_size=18 digit_size=8 --split test --clips 2 --frames 5");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  static void TearDownTestSuite() { delete scratch_; }
  static std::string path(const std::string& name) { return scratch_->path(name); }

  static void train(const std::string& name, const std::string& changes) {
    const Outcome trained = run("train " + path("tiny.yaml") + " --run " + path(name) + " " + changes);
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  static nlohmann::json scores(const std::string& name) {
    return nlohmann::json::parse(read_all(path(name) + "/metrics.json"));
  }
  static Outcome generate(const std::string& arguments) { return run("generate " + path("run") + " " + arguments); }
  static void fails(const std::string& arguments, int code, const std::vector<std::string>& parts) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    for (const auto& part : parts) expect_contains(outcome.err, part);
  }

  static ScratchFolder* scratch_;
};
ScratchFolder* FrameSizeProcess::scratch_ = nullptr;

TEST_F(FrameSizeProcess, EvaluateScoresAtTheSizeOfTheData) {
  const Outcome scored = run("evaluate " + path("run") + " data.image_size=18 --out " + path("wide"));
  ASSERT_EQ(scored.code, 0) << scored.err;
  expect_contains(scored.err, "another size than it learned from: 18 x 18, trained on 12 x 12");
  expect_contains(scored.out, "frames: 18 x 18, trained on 12 x 12");
  expect_contains(read_all(path("wide") + "/report.html"), "18 x 18, trained on 12 x 12");
  const nlohmann::json wide = scores("wide");
  EXPECT_EQ(wide["protocol"]["frame_size"], "18 x 18, trained on 12 x 12");
  EXPECT_EQ(wide["protocol"]["checkpoint"]["changes"], (nlohmann::json{"frames: 12 x 12 -> 18 x 18"}));
  EXPECT_EQ(wide["protocol"]["data"]["image_size"], 18);

  fails("evaluate " + path("run") + " data.image_size=18", 2, {"18 x 18, trained on 12 x 12", "replace", "--out"});

  // Forecasts without a model are those of a run that was trained at this size; the model's own are not.
  train("large", "data.image_size=18 train.steps=1 train.warmup=1");
  const Outcome large = run("evaluate " + path("large"));
  ASSERT_EQ(large.code, 0) << large.err;
  EXPECT_EQ(large.out.find("trained on"), std::string::npos) << large.out;
  const nlohmann::json same = scores("large");
  EXPECT_FALSE(same["protocol"].contains("frame_size"));
  for (size_t h = 0; h < 2; ++h) {
    const auto &a = wide["horizons"][h]["rows"], &b = same["horizons"][h]["rows"];
    ASSERT_GE(a.size(), 2u);
    EXPECT_NE(a[0], b[0]);
    for (size_t i = 1; i < a.size(); ++i) EXPECT_EQ(a[i], b[i]);
  }
  const auto strip = [](const std::string& name) { return io::read_png(path(name) + "/samples/evaluate-strip-0.png"); };
  EXPECT_EQ(strip("wide").height, strip("large").height);
}

TEST_F(FrameSizeProcess, BothEnginesScoreAlike) {
  const auto psnr = [](const std::string& engine) {
    const Outcome scored = run("evaluate " + path("run") + " data.image_size=15 evaluate.quantize=false --engine " +
                               engine + " --out " + path("engine"));  // no multiple of what the encoder halves
    EXPECT_EQ(scored.code, 0) << scored.err;
    return scores("engine")["horizons"][0]["rows"][0]["psnr_f01"]["mean"].get<double>();
  };
  EXPECT_NEAR(psnr("plan"), psnr("eager"), 1e-3);
}

TEST_F(FrameSizeProcess, TimingTakesItToo) {
  const Outcome timed =
      run("evaluate " + path("run") + " --timing data.image_size=18 evaluate.samples=1 --out " + path("t"));
  ASSERT_EQ(timed.code, 0) << timed.err;
  const auto result = nlohmann::json::parse(read_all(path("t") + "/timing.json"));
  EXPECT_EQ(result["protocol"]["checkpoint"]["changes"], (nlohmann::json{"frames: 12 x 12 -> 18 x 18"}));
}

TEST_F(FrameSizeProcess, ScoresOfAnotherSizeAreNotExported) {
  ASSERT_EQ(run("evaluate " + path("run") + " data.image_size=18 --out " + path("run")).code, 0);
  const Outcome exported = run("export " + path("run") + " --out " + path("exported"));
  EXPECT_EQ(exported.code, 0) << exported.err;
  EXPECT_FALSE(std::filesystem::exists(path("exported") + "/metrics.json"));
  expect_contains(exported.out + exported.err, "frames: 12 x 12 -> 18 x 18");
}

TEST_F(FrameSizeProcess, GenerateTakesASize) {
  const std::string context = "--context " + path("clips.npy") + " --clip 0 ";
  fails("generate " + path("run") + " " + context + "--frames 3 --out " + path("a.npy"), 3,
        {"18 x 18", "takes 12 x 12", "--size 18x18"});
  const auto shape = std::vector<int64_t>{6, 18, 18, 1};
  const Outcome made = generate(context + "--size 18x18 --frames 6 --out " + path("a.npy"));
  ASSERT_EQ(made.code, 0) << made.err;
  expect_contains(made.err, "18 x 18, trained on 12 x 12");
  EXPECT_EQ(io::read_npy(path("a.npy")).shape(), shape);
  EXPECT_EQ(generate(context + "--size 18 --engine eager --frames 6 --out " + path("b.npy")).code, 0);
  EXPECT_EQ(io::read_npy(path("b.npy")).shape(), shape);
  fails("generate " + path("run") + " " + context + "--size 18x20 --frames 3 --out " + path("c.npy"), 3,
        {"frames of 18 x 18", "takes 18 x 20"});
  fails("generate " + path("run") + " " + context + "--size large --frames 3 --out " + path("c.npy"), 2,
        {"--size", "'large'"});
}

TEST_F(FrameSizeProcess, AStateKnowsItsSize) {
  const std::string context = "--context " + path("clips.npy") + " --clip 1 --size 18x18 --force ";
  ASSERT_EQ(generate(context + "--frames 6 --out " + path("whole.npy")).code, 0);
  ASSERT_EQ(generate(context + "--frames 4 --out " + path("first.npy") + " --save-state " + path("s")).code, 0);
  fails("generate " + path("run") + " --state " + path("s") + " --frames 2 --out " + path("rest.npy"), 3,
        {"frames of 18x18", "runs on 12x12", "--size 18x18"});
  const Outcome rest = generate("--state " + path("s") + " --size 18x18 --frames 2 --out " + path("rest.npy"));
  ASSERT_EQ(rest.code, 0) << rest.err;
  const io::Array whole = io::read_npy(path("whole.npy")), after = io::read_npy(path("rest.npy"));
  EXPECT_TRUE(std::ranges::equal(whole.bytes().last(after.bytes().size()), after.bytes()));
}

// Frames of one's own, which training brought to a size, are brought to the other one.
TEST_F(FrameSizeProcess, OwnFramesAreBroughtToTheSize) {
  std::filesystem::create_directory(path("own"));
  for (const char* name : {"a.npy", "b.npy", "c.npy", "d.npy"}) {
    const Outcome made = run("data make " + path("own/") + name + " digits=1 image_size=24 digit_size=8 seed=" +
                             std::to_string(name[0]) + " --clips 1 --frames 12");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  write_text(path("own.yaml"),
             "model: {encoder: {depths: [4]}, decoder: {depths: [4]}, core: {name: convgru, features: 4}}\n"
             "data: {name: folder, path: " +
                 path("own") +
                 ", size: 12}\n"
                 "train: {steps: 2, batch: 1, frames: 4, sample_interval: 0}\n"
                 "evaluate: {context: 3, horizons: [4], samples: 1}\n");
  const Outcome trained = run("train " + path("own.yaml") + " --run " + path("own-run"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome made = run("generate " + path("own-run") + " --context " + path("own/a.npy") +
                           " --size 16x20 --frames 3 --out " + path("own.npy"));
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(io::read_npy(path("own.npy")).shape(), (std::vector<int64_t>{3, 1, 16, 20}));
  const Outcome scored = run("evaluate " + path("own-run") + " data.size=[16,20] --out " + path("own-scores"));
  ASSERT_EQ(scored.code, 0) << scored.err;
  EXPECT_EQ(scores("own-scores")["protocol"]["frame_size"], "16 x 20, trained on 12 x 12");
  fails("evaluate " + path("own-run") + " data.size=[16,20] data.colour=rgb --out " + path("rgb"), 3,
        {"12 x 12 with 1 channel", "16 x 20 with 3 channels"});
}

TEST_F(FrameSizeProcess, CoresOnTokensSayWhyNot) {
  train("s5", "model.core='{name: s5, features: 8, state_size: 8}' train.steps=1 train.warmup=1");
  fails("evaluate " + path("s5") + " data.image_size=18 --out " + path("none"), 2,
        {"expected frames of 12 x 12", "got 18 x 18", "core s5", "'patch'", "convs5"});
  EXPECT_FALSE(std::filesystem::exists(path("none") + "/metrics.json"));
  fails("generate " + path("s5") + " --size 18 --context " + path("clips.npy") + " --frames 2 --out " + path("n.npy"),
        2, {"expected frames of 12 x 12", "got 18 x 18", "core s5"});
}

}  // namespace
}  // namespace convssm
