// export as a process: the folder is a model of its own, which does what the run does.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "../data/idx_bytes.h"
#include "convssm/io/checksum.h"
#include "convssm/io/npy.h"
#include "convssm/io/safetensors.h"
#include "convssm/io/yaml.h"
#include "program.h"
#include "tiny_run.h"

namespace convssm {
namespace {

namespace fs = std::filesystem;

// One run on digits of a file, evaluated and exported; then the file is taken away.
class ExportProcess : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new ScratchFolder();
    write_text(path("tiny.yaml"), tiny_config());
    write_text(path("digits.idx"),
               data::idx_images(12, 8, [](int image, int y, int x) { return 40 * ((image + y * x) % 6); }));
    const std::string images = " data.images=" + path("digits.idx");
    const Outcome trained = run("train " + path("tiny.yaml") + " --run " + path("run") + images);
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Outcome scored = run("evaluate " + path("run"));
    ASSERT_EQ(scored.code, 0) << scored.err;
    exported_ = run("export " + path("run") + " --out " + path("small") + " --licence MIT");
    ASSERT_EQ(exported_.code, 0) << exported_.err;
    fs::rename(path("digits.idx"), path("moved.idx"));
  }
  static void TearDownTestSuite() { delete scratch_; }
  static std::string path(const std::string& name) { return scratch_->path(name); }

  static std::string future_of(const std::string& model, const std::string& name) {
    const Outcome made =
        run("generate " + path(model) + " --context " + path("small/context.npy") + " --frames 9 --out " + path(name));
    EXPECT_EQ(made.code, 0) << made.err;
    return read_all(path(name));
  }

  static ScratchFolder* scratch_;
  static Outcome exported_;
};
ScratchFolder* ExportProcess::scratch_ = nullptr;
Outcome ExportProcess::exported_;

TEST_F(ExportProcess, HoldsTheWeightsAlone) {
  for (const char* name : {"model.safetensors", "config.yaml", "export.json", "log.jsonl", "status.json",
                           "metrics.json", "context.npy", "README.md"}) {
    EXPECT_TRUE(fs::exists(path("small/") + name)) << name;
    expect_contains(exported_.out, name);
  }
  expect_contains(exported_.out, "MB");
  const io::SafetensorsFile file(path("small/model.safetensors")),
      whole(path("run/checkpoints/step-000012.safetensors"));
  EXPECT_LT(file.names().size(), whole.names().size());
  for (const std::string& name : file.names()) EXPECT_TRUE(name.starts_with("model.")) << name;
  EXPECT_LT(fs::file_size(path("small/model.safetensors")),
            fs::file_size(path("run/checkpoints/step-000012.safetensors")) / 2);
  const auto record = nlohmann::json::parse(read_all(path("small/export.json")));
  EXPECT_EQ(record["step"], 12);
  EXPECT_EQ(record["weights"]["checksum"], io::file_checksum(path("small/model.safetensors")));
}

TEST_F(ExportProcess, GeneratesWhatTheRunDoesWithoutItsData) {
  const std::string expected = future_of("run", "a.npy");
  EXPECT_EQ(io::read_npy(path("a.npy")).shape(), (std::vector<int64_t>{9, 12, 12, 1}));
  EXPECT_EQ(io::read_npy(path("small/context.npy")).shape(), (std::vector<int64_t>{3, 12, 12, 1}));
  EXPECT_EQ(future_of("small", "b.npy"), expected);
  EXPECT_EQ(future_of("small/model.safetensors", "c.npy"), expected);
}

TEST_F(ExportProcess, ScoresWhatTheRunDoes) {
  const Outcome missing = run("evaluate " + path("small") + " --out " + path("scores"));
  EXPECT_EQ(missing.code, 4) << missing.err;
  expect_contains(missing.err, "digits.idx");
  const Outcome outcome =
      run("evaluate " + path("small") + " data.images=" + path("moved.idx") + " --out " + path("scores"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto before = nlohmann::json::parse(read_all(path("small/metrics.json")));
  const auto now = nlohmann::json::parse(read_all(path("scores/metrics.json")));
  EXPECT_EQ(before["horizons"], now["horizons"]);
}

TEST_F(ExportProcess, NamesNoPlaceOfThisMachine) {
  EXPECT_EQ(io::read_yaml(path("small/config.yaml"))["data"]["images"], "digits.idx");
  for (const auto& entry : fs::directory_iterator(path("small"))) {
    const std::string text = read_all(entry.path());
    EXPECT_EQ(text.find(scratch_->path()), std::string::npos) << entry.path();
    EXPECT_EQ(text.find(CONVSSM_SOURCE_DIR), std::string::npos) << entry.path();
  }
}

TEST_F(ExportProcess, TheCardSaysWhatItIs) {
  const std::string card = read_all(path("small/README.md"));
  for (const char* part :
       {"# small\n", "convs5", "moving-mnist: ", "12 x 12, 1 channel", "12 steps of 2 clips of 6 frames",
        "| convs5 | 8 |", "| blank frame | 4 |", "psnr_f01 ↑", "convssm generate small --context small/context.npy",
        "data.images=digits.idx", "weights: MIT."}) {
    expect_contains(card, part);
  }
  EXPECT_EQ(card.find("data make"), std::string::npos);  // context.npy is there
}

TEST_F(ExportProcess, DoesNotOverwriteUnasked) {
  const std::string again = "export " + path("run") + " --out " + path("twice");
  ASSERT_EQ(run(again).code, 0);
  const std::string card = read_all(path("twice/README.md"));  // without the data there is no context.npy
  expect_contains(card, "convssm data make clip.npy digits=1 image_size=12 digit_size=8");
  expect_contains(card, "--clips 1 --frames 3\n    convssm generate twice --context clip.npy");
  write_text(path("twice/README.md"), "mine");
  const std::string weights = read_all(path("twice/model.safetensors"));
  const Outcome refused = run(again + " --step 8");
  EXPECT_EQ(refused.code, 2);
  expect_contains(refused.err, "--force");
  EXPECT_EQ(read_all(path("twice/model.safetensors")), weights);
  const Outcome forced = run(again + " --step 8 --force");
  EXPECT_EQ(forced.code, 0) << forced.err;
  expect_contains(forced.err, "of step 12");  // the scores, which are not those of step 8
  EXPECT_FALSE(fs::exists(path("twice/metrics.json")));
  EXPECT_NE(read_all(path("twice/model.safetensors")), weights);
  EXPECT_EQ(read_all(path("twice/README.md")), "mine");
}

// Scores of other numbers than those of the exported weights are left out, and said to be.
TEST_F(ExportProcess, TakesOnlyScoresOfWhatItHolds) {
  const std::string core = "'model.core={name: transformer, features: 8, heads: 2, out_features: 8, window: 4}'";
  const std::string averaged = path("averaged"), window = path("window"), train = "train " + path("tiny.yaml");
  ASSERT_EQ(run(train + " train.ema=0.9 --run " + averaged).code, 0);
  ASSERT_EQ(run(train + " " + core + " --run " + window).code, 0);
  const auto exported_after = [&](const std::string& folder, const std::string& options) {
    const Outcome scored = run("evaluate " + folder + " " + options);
    EXPECT_EQ(scored.code, 0) << scored.err;
    const Outcome made = run("export " + folder + " --force --out " + path("one"));
    EXPECT_EQ(made.code, 0) << made.err;
    return made.err;
  };
  const auto left_out = [&](const std::string& folder, const std::string& options, const std::string& reason) {
    const std::string said = exported_after(folder, options);
    expect_contains(said, "no scores");
    expect_contains(said, reason);
    EXPECT_FALSE(fs::exists(path("one/metrics.json"))) << options;
  };
  left_out(averaged, "--without-average", "of the trained weights");
  left_out(averaged, "--precision int8", "of int8");
  left_out(window, "model.core.window=2", "model.core.window: 4 -> 2");
  EXPECT_EQ(exported_after(averaged, "").find("no scores"), std::string::npos);
  const auto metrics = nlohmann::json::parse(read_all(path("one/metrics.json")));
  EXPECT_EQ(metrics["protocol"]["checkpoint"]["weights"], "average");
}

TEST_F(ExportProcess, NeverReplacesTheFilesOfARun) {
  const std::string log = read_all(path("run/log.jsonl"));
  const Outcome refused = run("export " + path("run") + " --out " + path("run") + " --force");
  EXPECT_EQ(refused.code, 2);
  expect_contains(refused.err, "is a run folder");
  EXPECT_EQ(read_all(path("run/log.jsonl")), log);
}

TEST_F(ExportProcess, MistakesAreExplained) {
  const Outcome twice = run("export " + path("small") + " --out " + path("x"));
  EXPECT_EQ(twice.code, 3);
  expect_contains(twice.err, "not a run folder");
  fs::create_directory(path("empty"));
  const Outcome empty =
      run("generate " + path("empty") + " --context " + path("small/context.npy") + " --out " + path("x.npy"));
  EXPECT_EQ(empty.code, 3);
  expect_contains(empty.err, "model.safetensors");
  const Outcome step =
      run("generate " + path("small") + " --step 8 --context " + path("small/context.npy") + " --out " + path("x.npy"));
  EXPECT_EQ(step.code, 3);
  expect_contains(step.err, "step 12");
}

}  // namespace
}  // namespace convssm
