// generate, evaluate and models as processes, on a model that was just trained.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "convssm/io/animation.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "program.h"
#include "tiny_run.h"

namespace convssm {
namespace {

// One trained run for all tests of this file, and a context of two clips of 5 frames.
class GenerateProcess : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new ScratchFolder();
    write_text(path("tiny.yaml"), tiny_config());
    const Outcome trained = run("train " + path("tiny.yaml") + " --run " + path("run"));
    ASSERT_EQ(trained.code, 0) << trained.err;
    expect_contains(trained.err, "8 channels cannot be cut into 32 groups");  // said once, where it can be changed
    const Outcome made = run("data make " + path("clips.npy") +
                             " digits=1 image_size=12 digit_size=8 --split test --clips 2 --frames 5");
    ASSERT_EQ(made.code, 0) << made.err;
  }
  static void TearDownTestSuite() { delete scratch_; }
  static std::string path(const std::string& name) { return scratch_->path(name); }

  static Outcome generate(const std::string& arguments) { return run("generate " + path("run") + " " + arguments); }
  static void fails(const std::string& arguments, int code, const std::vector<std::string>& parts) {
    const Outcome outcome = generate(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    for (const auto& part : parts) expect_contains(outcome.err, part);
  }

  static ScratchFolder* scratch_;
};
ScratchFolder* GenerateProcess::scratch_ = nullptr;

int64_t frames_in(const std::string& path) {
  if (path.ends_with(".npy")) return io::read_npy(path).shape()[0];
  if (path.ends_with(".npz")) return io::NpzFile(path).read("video").shape()[0];
  return io::read_animation(path).shape()[0];
}

TEST_F(GenerateProcess, WritesEveryFormat) {
  for (const char* ending : {".npy", ".npz", ".gif", ".mp4", ".png"}) {
    const std::string out = path(std::string("future") + ending);
    const Outcome outcome = generate("--context " + path("clips.npy") + " --clip 1 --frames 7 --out " + out);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("groups"), std::string::npos) << outcome.err;
    ASSERT_TRUE(std::filesystem::exists(out)) << ending;
    if (ending == std::string(".png")) continue;
    EXPECT_EQ(frames_in(out), 7) << ending;
  }
  EXPECT_EQ(io::read_npy(path("future.npy")).shape(), (std::vector<int64_t>{7, 12, 12, 1}));  // as clips.npy, NTHWC
  const io::Array zipped = io::NpzFile(path("future.npz")).read("video"), plain = io::read_npy(path("future.npy"));
  EXPECT_TRUE(std::ranges::equal(zipped.bytes(), plain.bytes()));
}

TEST_F(GenerateProcess, ArraysAreLaidOutLikeTheContext) {
  io::write_npy(path("thw.npy"), io::Array(io::DType::u8, {6, 12, 12}));
  io::write_npy(path("tchw.npy"), io::Array(io::DType::u8, {6, 1, 12, 12}));
  const auto shape = [](const std::string& arguments, const std::string& said) {
    const Outcome outcome = generate(arguments + " --frames 2 --force --out " + path("laid.npy"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_contains(outcome.err, "laid.npy, u8 " + said);
    return io::read_npy(path("laid.npy")).shape();
  };
  EXPECT_EQ(shape("--context " + path("thw.npy"), "[T,H,W]"), (std::vector<int64_t>{2, 12, 12}));
  EXPECT_EQ(shape("--context " + path("tchw.npy"), "[T,C,H,W]"), (std::vector<int64_t>{2, 1, 12, 12}));
  const Outcome saved =
      generate("--context " + path("thw.npy") + " --context-frames -2 --frames 0 --save-state " + path("laid.state"));
  ASSERT_EQ(saved.code, 0) << saved.err;
  expect_contains(saved.err, "1 clip of 2 frames");
  EXPECT_EQ(shape("--state " + path("laid.state"), "[T,H,W,C]"), (std::vector<int64_t>{2, 12, 12, 1}));
  EXPECT_EQ(shape("--layout THW --state " + path("laid.state"), "[T,H,W]"), (std::vector<int64_t>{2, 12, 12}));
}

TEST_F(GenerateProcess, SeveralSamplesAreSeveralFiles) {
  const Outcome outcome =
      generate("--context " + path("clips.npy") + " --samples 2 --seed 5 --frames 3 --out " + path("s.npy"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.err, "draws no random numbers");
  EXPECT_TRUE(std::filesystem::exists(path("s-0-0.npy")));
  EXPECT_TRUE(std::filesystem::exists(path("s-1-1.npy")));
  EXPECT_TRUE(std::ranges::equal(io::read_npy(path("s-0-0.npy")).bytes(), io::read_npy(path("s-0-1.npy")).bytes()));
  const Outcome state = generate("--state nowhere --samples 2 --out " + path("x.npy"));
  EXPECT_EQ(state.code, 2);
  expect_contains(state.err, "--samples needs --context");
}

TEST_F(GenerateProcess, StoppedAndContinuedIsTheSame) {
  const std::string context = "--context " + path("clips.npy") + " --clip 0 ";
  ASSERT_EQ(generate(context + "--frames 9 --out " + path("nine.npy")).code, 0);
  const Outcome first =
      generate(context + "--frames 4 --out " + path("four.npy") + " --save-state " + path("s.safetensors"));
  ASSERT_EQ(first.code, 0) << first.err;
  ASSERT_EQ(generate("--state " + path("s.safetensors") + " --frames 5 --out " + path("five.npy")).code, 0);
  const io::Array nine = io::read_npy(path("nine.npy"));
  const auto expected = nine.values<uint8_t>();
  std::vector<uint8_t> found;
  for (const char* part : {"four.npy", "five.npy"}) {
    const io::Array array = io::read_npy(path(part));
    found.insert(found.end(), array.values<uint8_t>().begin(), array.values<uint8_t>().end());
  }
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], expected[i]) << i;
}

TEST_F(GenerateProcess, AStateGoesOnWithItsOwnWeightsOnly) {
  const std::string averaged = path("averaged"), context = " --frames 2 --context " + path("clips.npy") + " --clip 0 ";
  ASSERT_EQ(run("train " + path("tiny.yaml") + " train.ema=0.9 --run " + averaged).code, 0);
  for (const bool trained : {true, false}) {
    const std::string mine = trained ? " --without-average" : "", other = trained ? "" : " --without-average";
    const std::string state = path(trained ? "trained.state" : "average.state");
    ASSERT_EQ(run("generate " + averaged + context + "--save-state " + state + mine).code, 0);
    const std::string go_on = "generate " + averaged + " --frames 2 --force --out " + path("go_on.npy") + " --state ";
    EXPECT_EQ(run(go_on + state + mine).code, 0);
    const Outcome refused = run(go_on + state + other);
    EXPECT_EQ(refused.code, 3) << refused.err;
    for (const char* part : {"average", "trained", "--without-average"}) expect_contains(refused.err, part);
  }
}

TEST_F(GenerateProcess, SeveralClipsGoToFilesOfTheirOwn) {
  const Outcome outcome =
      generate("--context " + path("clips.npy") + " --frames 3 --with-context --out " + path("m.npy"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const io::Array clips = io::read_npy(path("clips.npy"));
  for (int i = 0; i < 2; ++i) {
    const io::Array made = io::read_npy(path("m-" + std::to_string(i) + ".npy"));
    EXPECT_EQ(made.shape(), (std::vector<int64_t>{8, 12, 12, 1}));
    const size_t size = 5 * 144;
    EXPECT_TRUE(std::ranges::equal(made.bytes().subspan(0, size), clips.bytes().subspan(i * size, size)));
  }
}

std::vector<uint8_t> bytes_of(const std::string& file) {
  const io::Array array = io::read_npy(file);
  return {array.values<uint8_t>().begin(), array.values<uint8_t>().end()};
}

int largest_difference(const std::vector<uint8_t>& x, const std::vector<uint8_t>& y) {
  int most = x.size() == y.size() ? 0 : 256;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) most = std::max(most, std::abs(x[i] - y[i]));
  return most;
}

double mean_difference(const std::vector<uint8_t>& x, const std::vector<uint8_t>& y) {
  double sum = x.size() == y.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) sum += std::abs(x[i] - y[i]);
  return sum / static_cast<double>(x.size());
}

TEST_F(GenerateProcess, BatchesEnginesAndPrecisionsAgree) {
  const std::string context = "--context " + path("clips.npy") + " --frames 6 ";
  ASSERT_EQ(generate(context + "--out " + path("all.npy")).code, 0);
  ASSERT_EQ(generate(context + "--batch 1 --out " + path("single.npy")).code, 0);
  ASSERT_EQ(generate(context + "--engine eager --out " + path("eager.npy")).code, 0);
  const Outcome small = generate(context + "--precision int8 --batch 1 --out " + path("int8.npy"));
  ASSERT_EQ(small.code, 0) << small.err;
  for (const char* clip : {"-0.npy", "-1.npy"}) {
    const auto expected = bytes_of(path(std::string("all") + clip));
    EXPECT_LE(largest_difference(bytes_of(path(std::string("single") + clip)), expected), 1);
    EXPECT_LE(largest_difference(bytes_of(path(std::string("eager") + clip)), expected), 1);
    const double rounded = mean_difference(bytes_of(path(std::string("int8") + clip)), expected);
    EXPECT_LT(rounded, 10);
    EXPECT_GT(rounded, 0) << "not in integers";
  }
  fails(context + "--precision int4 --out " + path("x.npy"), 2, {"int4", "int8"});
  fails(context + "--batch 1 --save-state " + path("s1"), 2, {"--batch", "2 clips"});
}

TEST_F(GenerateProcess, MistakesAreExplained) {
  const std::string context = "--context " + path("clips.npy") + " --clip 0 --frames 2 ";
  fails("--frames 2 --out " + path("x.npy"), 2, {"--context", "--state"});
  fails(context, 2, {"--out", "--save-state"});
  fails(context + "--out " + path("x.flv"), 2, {".npy", ".gif", "x.flv"});
  fails("--context " + path("none.npy") + " --out " + path("x.npy"), 4, {"none.npy"});
  fails("--context " + path("clips.npy") + " --clip 2 --out " + path("x.npy"), 3, {"2 clips", "number 2"});
  fails("--context " + path("clips.npy") + " --context-frames 9 --out " + path("x.npy"), 3, {"5 frames", "9"});
  io::write_npy(path("large.npy"), io::Array(io::DType::u8, {4, 20, 20}));
  fails("--context " + path("large.npy") + " --out " + path("x.npy"), 3, {"20 x 20", "takes 12 x 12"});
  io::write_npy(path("nan.npy"), io::make_array({1, 12, 12}, std::vector<float>(144, NAN)));
  fails("--context " + path("nan.npy") + " --out " + path("x.npy"), 3, {"nan.npy"});
  write_text(path("there.npy"), "");
  fails(context + "--out " + path("there.npy"), 2, {"there.npy", "--force"});
  fails(context + "--out /proc/x.npy", 4, {"/proc/x.npy"});
  fails(context + "--out " + path("x.npy") + " evaluate.samples=3", 2, {"evaluate.samples=3", "model."});
  fails(context + "--out " + path("x.npy") + " modle.core.window=3", 2, {"modle.core.window=3", "model."});
  fails("--state " + path("run/checkpoints/step-000012.safetensors") + " --out " + path("x.npy"), 3,
        {"not a saved state"});
  EXPECT_EQ(run("generate " + path("nothing") + " " + context + "--out " + path("x.npy")).code, 4);
  EXPECT_FALSE(std::filesystem::exists(path("x.npy")));
}

TEST_F(GenerateProcess, EvaluateGivesATableAndFiles) {
  const Outcome outcome = run("evaluate " + path("run"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"4 frames ahead", "8 frames ahead", "convs5", "copy last frame", "blank frame", "psnr_f01"}) {
    expect_contains(outcome.out, part);
  }
  const auto metrics = nlohmann::json::parse(read_all(path("run/metrics.json")));
  EXPECT_EQ(metrics["protocol"]["samples"], 5);
  EXPECT_EQ(metrics["curves"]["psnr_f01"]["convs5"].size(), 8u);
  for (const char* file : {"samples/evaluate-strip-0.png", "samples/evaluate.gif", "report.html"}) {
    EXPECT_TRUE(std::filesystem::exists(path("run/") + file)) << file;
  }
  EXPECT_EQ(run("evaluate " + path("run") + " model.core.features=3").code, 2);
  const Outcome range = run("evaluate " + path("run") + " model.core.window=3");  // convs5 has none
  EXPECT_EQ(range.code, 2);
  expect_contains(range.err, "window");
}

TEST_F(GenerateProcess, EvaluateInSeveralSettings) {
  const std::string out = path("settings"), to = " --out " + out;
  const std::string one = "evaluate " + path("run") + " evaluate.context=null evaluate.horizons=null ";
  const Outcome outcome =
      run(one + "evaluate.futures=2 'evaluate.settings=[{context: 4, frames: 5}, {name: far, context: 2, frames: 9}]'" +
          to);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"[4+5] 4 frames of context", "[far] 2 frames of context", "9 frames ahead"}) {
    expect_contains(outcome.out, part);
  }
  expect_contains(outcome.err, "draws nothing: one future of each clip instead of 2");
  EXPECT_EQ(nlohmann::json::parse(read_all(out + "/metrics.json"))["settings"].size(), 2u);
  for (const char* file : {"samples/evaluate.gif", "samples/evaluate-strip-0.png", "samples/evaluate-setting-2.gif",
                           "samples/evaluate-setting-2-strip-0.png"}) {
    EXPECT_TRUE(std::filesystem::exists(out + "/" + file)) << file;
  }
  expect_contains(read_all(out + "/report.html"), "evaluate setting 2, far: test clips; the first 2 frames are seen");
  const Outcome table = run("results " + out + " --chart " + path("far.png") + " --setting far");
  EXPECT_EQ(table.code, 0) << table.err;
  expect_contains(table.out, "far");
  ASSERT_EQ(run(one + "'evaluate.settings=[{context: 4, frames: 5}]'" + to).code, 0);
  EXPECT_FALSE(std::filesystem::exists(out + "/samples/evaluate-setting-2.gif"));
  const Outcome both = run("evaluate " + path("run") + " 'evaluate.settings=[{context: 4, frames: 5}]'" + to);
  EXPECT_EQ(both.code, 2);
  expect_contains(both.err, "evaluate.horizons=null");
  const Outcome empty = run(one + "evaluate.settings=[]" + to);
  EXPECT_EQ(empty.code, 2);
  expect_contains(empty.err, "at least one");
}

TEST_F(GenerateProcess, EvaluateAtOtherFrameRates) {
  const std::string to = " --timing --out " + path("timing");
  const Outcome outcome = run("evaluate " + path("run") + to);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"5 test clips", "1.33x", "not rescaled, next frame", "60 %", "own forecast filled in"}) {
    expect_contains(outcome.out, part);
  }
  const auto timing = nlohmann::json::parse(read_all(path("timing/timing.json")));
  EXPECT_EQ(timing["protocol"]["checkpoint"]["step"], 12);
  EXPECT_EQ(timing["rates"]["rate"].size(), 6u);
  EXPECT_EQ(timing["dropped"]["lines"].size(), 5u);
  for (const char* file : {"timing_rates.png", "timing_dropped.png"}) {
    EXPECT_GT(std::filesystem::file_size(path("timing/") + file), 1000u) << file;
  }
  EXPECT_FALSE(std::filesystem::exists(path("timing/metrics.json")));
  expect_contains(run("evaluate --help").out, "--timing evaluate.samples=64");

  io::write_npy(path("recording.npy"), io::Array(io::DType::u8, {6, 40, 12, 12}));
  const Outcome folder =
      run("evaluate " + path("run") + to + " 'data={name: folder, path: " + path("recording.npy") + "}'");
  EXPECT_EQ(folder.code, 2) << folder.err;
  expect_contains(folder.err, "only the dataset moving-mnist");
  const std::string other = path("convlstm");
  ASSERT_EQ(run("train " + path("tiny.yaml") + " 'model.core={name: convlstm, features: 8}' --run " + other).code, 0);
  const Outcome without = run("evaluate " + other + to);
  EXPECT_EQ(without.code, 2);
  expect_contains(without.err, "no time between frames");
}

TEST_F(GenerateProcess, ModelsListsAndCounts) {
  const Outcome list = run("models");
  EXPECT_EQ(list.code, 0);
  for (const char* part : {"pixel", "convs5", "hybrid", "convrnn", "convlstm", "convgru", "s5", "transformer",
                           "performer", "moving-mnist"}) {
    expect_contains(list.out, part);
  }
  const Outcome counted = run("models " + path("tiny.yaml"));
  EXPECT_EQ(counted.code, 0);
  expect_contains(counted.out, "convs5       " + path("tiny.yaml"));
}

}  // namespace
}  // namespace convssm
