// The config that is suggested for new data is complete, fits the data and trains.
#include "convssm/run/first_config.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convssm/evaluate/evaluate.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/io/yaml.h"
#include "convssm/run/training_run.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::run {
namespace {

struct FirstConfig : ::testing::Test {
  ScratchFolder folder;
  std::string data(const std::string& name, const std::string& more = "") {
    return "data:\n  name: folder\n  path: " + folder.path(name) + "\n" + more;
  }
  void npz(const std::string& name, const at::Tensor& video, const at::Tensor& actions) {
    folder.write(name, "");
    io::write_npz(folder.path(name),
                  std::vector<io::NamedArray>{{"data", io::to_array(video)}, {"actions", io::to_array(actions)}});
  }
  static Config parse(const std::string& text) { return Config::from_json(io::parse_yaml(text, "first config")); }

  // Two steps of it, and the evaluation has clips that are long enough.
  void expect_trains(const std::string& text, int64_t samples = 1) {
    SCOPED_TRACE(text);
    nlohmann::json json = io::parse_yaml(text, "first config");
    for (const char* section : {"model", "data", "train", "evaluate"}) EXPECT_TRUE(json.contains(section)) << section;
    json["train"]["steps"] = 2, json["train"]["warmup"] = 1;
    const Config config = Config::from_json(json);
    RunFolder run(folder.path("run"));
    TrainingRun training(config, run, false);
    EXPECT_EQ(training.run(StopRequest()), train::Outcome::finished);
    const auto options = evaluate::EvaluateOptions::from_json(config.evaluate);
    EXPECT_GE(evaluate::count_samples(*make_dataset(config), options), samples);
  }
};

TEST_F(FirstConfig, OfOneRecording) {
  io::write_npy(folder.path("a.npy"), io::to_array(at::rand({800, 20, 24})));
  const std::string text = first_config(data("a.npy"));
  const Config config = parse(text);
  EXPECT_LE(config.train.steps, 1000);
  EXPECT_GE(config.train.steps, 200);
  EXPECT_EQ(config.train.frames, 30);
  EXPECT_EQ(config.train.optimizer.warmup, config.train.steps / 10);
  EXPECT_LE(config.train.sample_context + config.train.sample_frames, 80) << "a tenth of it is for validation";
  expect_trains(text, 16);

  io::write_npy(folder.path("month.npy"), io::to_array(at::rand({744, 8, 8})));
  EXPECT_NE(first_config(data("month.npy")).find("stride: 1 "), std::string::npos)
      << "74 test frames are 15 windows of 60";
}

TEST_F(FirstConfig, OfManyShortClipsWithActions) {
  npz("d/a.npz", at::rand({8, 9, 12, 12, 1}), at::randint(0, 5, {8, 9}, at::kLong));
  const Config config = parse(first_config(data("d")));
  EXPECT_EQ(config.model["actions"], make_dataset(config)->actions().count);
  EXPECT_EQ(config.train.frames, 9);
  expect_trains(first_config(data("d")));
}

TEST_F(FirstConfig, OfActionsThatAreNumbers) {
  npz("a.npz", at::rand({6, 10, 12, 12, 1}), at::rand({6, 10, 3}));
  const Config config = parse(first_config(data("a.npz")));
  EXPECT_EQ(config.model["action_values"], 3);
  expect_trains(first_config(data("a.npz")));
}

TEST_F(FirstConfig, OfFramesWithMissingPixels) {
  at::Tensor values = at::rand({60, 12, 12});
  values.slice(1, 0, 3) = NAN;
  io::write_npy(folder.path("a.npy"), io::to_array(values));
  const std::string section = data("a.npy", "  missing: mask\n  low: 0\n  high: 1\n");
  EXPECT_FALSE(parse(first_config(section)).model.contains("mask_input"));
  EXPECT_EQ(parse(first_config(section, true)).model["mask_input"], true);
  expect_trains(first_config(section, true));
}

TEST_F(FirstConfig, LargeFramesGetSmallerStepsNotLongerOnes) {
  io::write_npy(folder.path("a.npy"), io::to_array(at::rand({40, 200, 320})));
  const Config config = parse(first_config(data("a.npy", "  low: 0\n  high: 1\n")));
  EXPECT_LT(config.train.batch * config.train.frames, 2 * 30);
  EXPECT_EQ(config.model["encoder"]["depths"].size(), 6u);
}

TEST_F(FirstConfig, OfFramesThatAreAllThereIs) {
  io::write_npy(folder.path("a.npy"), io::to_array(at::rand({5, 8, 8})));
  const std::string text = first_config(data("a.npy"));
  EXPECT_EQ(parse(text).train.frames, 5);
  EXPECT_NE(text.find("sample_interval: 0"), std::string::npos) << text;
  EXPECT_NE(text.find("# evaluate: there are no test clips"), std::string::npos) << text;
}

// A mistake in the model is told before anything is read: there is no such data.
TEST_F(FirstConfig, MisspeltKeysOfTheModelAreToldBeforeTheDataIsRead) {
  const auto expect = [&](const nlohmann::json& model, const std::vector<std::string>& parts) {
    const Config config = Config::from_json({{"model", model}, {"data", {{"name", "folder"}, {"path", "/nowhere"}}}});
    RunFolder run(folder.path("run"));
    testing::expect_error([&] { TrainingRun(config, run, false); }, parts);
  };
  expect({{"encodr", {{"depths", {4}}}}}, {"encodr", "did you mean 'encoder'"});
  expect({{"encoder", {{"depth", {4}}}}}, {"model.encoder", "did you mean 'depths'"});
  expect({{"core", {{"name", "convs6"}}}}, {"convs6", "convs5"});
  expect({{"core", {{"name", "convs5"}, {"feature", 8}}}}, {"did you mean 'features'"});
  expect({{"core", {{"name", "transformer"}, {"patch", 4}, {"out_features", 8}, {"head", 2}}}},
         {"did you mean 'heads'"});
  expect({{"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}}}}, {"/nowhere"});
}

}  // namespace
}  // namespace convssm::run
