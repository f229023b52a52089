// The `train` section, the schedule and the config as a whole.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "convssm/evaluate/evaluate.h"
#include "convssm/io/yaml.h"
#include "convssm/models/registry.h"
#include "convssm/train/config.h"
#include "tests/support.h"

namespace convssm::train {
namespace {

using testing::expect_error;

TEST(Schedule, WarmUpThenHalfACosine) {
  TrainOptions o;
  o.steps = 1000, o.warmup = 100, o.lr = 2;
  EXPECT_EQ(learning_rate(o, 0), 0);
  EXPECT_DOUBLE_EQ(learning_rate(o, 50), 1);
  EXPECT_DOUBLE_EQ(learning_rate(o, 100), 2);
  EXPECT_DOUBLE_EQ(learning_rate(o, 550), 1);
  EXPECT_NEAR(learning_rate(o, 325), 2 * 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(learning_rate(o, 1000), 0, 1e-15);
  o.schedule = Schedule::cosine_short;  // over steps - 2 warmup
  EXPECT_DOUBLE_EQ(learning_rate(o, 500), 1);
  EXPECT_NEAR(learning_rate(o, 900), 0, 1e-15);
  EXPECT_NEAR(learning_rate(o, 950), 0, 1e-15);
  o.schedule = Schedule::constant;
  EXPECT_EQ(learning_rate(o, 999), 2);
  o.warmup = 0;
  EXPECT_EQ(learning_rate(o, 0), 2);
}

TEST(TrainOptions, ReadBackWhatTheyWrite) {
  const nlohmann::json json = {{"steps", 10}, {"warmup", 2}, {"lr", 0.1}, {"schedule", "cosine_short"}, {"frames", 9}};
  const TrainOptions o = TrainOptions::from_json(json);
  EXPECT_EQ(o.sample_context, 3);
  EXPECT_EQ(o.sample_frames, 6);
  EXPECT_EQ(TrainOptions::from_json(o.to_json()).to_json(), o.to_json());
}

TEST(TrainOptions, EveryWrongValueIsExplained) {
  const auto wrong = [](const char* key, const nlohmann::json& value, std::vector<std::string> parts) {
    parts.emplace_back(key);
    nlohmann::json json = {{"warmup", 0}};
    json[key] = value;
    expect_error([&] { TrainOptions::from_json(json); }, parts);
  };
  wrong("steps", 0, {"positive", "0"});
  wrong("steps", 1.5, {"whole number", "1.5"});
  wrong("batch", -1, {"positive", "-1"});
  wrong("frames", 1, {"at least 2", "1"});
  wrong("accumulate", 3, {"divisor", "3"});
  wrong("lr", 0, {"positive"});
  wrong("lr", "fast", {"number", "fast"});
  wrong("warmup", 1000000, {"between 0 and steps"});
  wrong("schedule", "linear", {"cosine_short", "linear"});
  wrong("beta2", 1, {"[0,1)"});
  wrong("learning_rate", 1, {"unknown option"});
  wrong("step", 5, {"did you mean 'steps'"});
  wrong("chunk_frames", -4, {"auto, 0 or positive", "-4"});
  wrong("chunk_frames", -1, {"auto, 0 or positive", "-1"});
  wrong("chunk_frames", "some", {"auto, 0 or positive", "'some'"});
  wrong("recompute", "yes please", {"yes please"});
  for (const char* text : {"much", "12", "-3GiB", "0MB", "3 parsecs", "GiB", "1e99TiB"}) {
    wrong("memory", text, {"auto", "12GiB", text});
  }
}

TEST(TrainOptions, PiecesAreChosenUnlessTheyAreGiven) {
  const auto read = [](const nlohmann::json& chunk) {
    return TrainOptions::from_json({{"warmup", 0}, {"chunk_frames", chunk}}).chunk_frames;
  };
  EXPECT_EQ(TrainOptions::from_json({{"warmup", 0}}).chunk_frames, kAutomatic);
  EXPECT_EQ(read("auto"), kAutomatic);
  EXPECT_EQ(read(0), 0);
  EXPECT_EQ(read(7), 7);
  EXPECT_EQ(TrainOptions::from_json({{"warmup", 0}}).to_json()["chunk_frames"], "auto");
}

TEST(TrainOptions, MemoryHasUnits) {
  const auto bytes = [](const char* text) {
    return TrainOptions::from_json({{"warmup", 0}, {"memory", text}}).memory_bytes();
  };
  EXPECT_EQ(bytes("auto"), 0u);
  EXPECT_EQ(bytes("2KiB"), 2048u);
  EXPECT_EQ(bytes("1.5 GiB"), 1610612736u);
  EXPECT_EQ(bytes("3GB"), 3000000000u);
}

TEST(Config, UnknownAndMissingSections) {
  expect_error([] { Config::from_json({{"modle", {}}}); }, {"modle", "model"});
  expect_error([] { Config::from_json({{"model", nlohmann::json::object()}}); }, {"no section 'data'"});
  expect_error([] { Config::from_json({{"model", 3}}); }, {"model", "group of options", "3"});
  expect_error([] { Config::from_json({{"seed", -1}}); }, {"seed", "-1"});
}

TEST(Config, DifferencesNameTheKey) {
  const nlohmann::json a = {{"train", {{"lr", 1}, {"batch", 2}}}}, b = {{"train", {{"lr", 2}, {"steps", 3}}}};
  EXPECT_EQ(differences(a, b),
            (std::vector<std::string>{"train.batch: 2 -> nothing", "train.lr: 1 -> 2", "train.steps: nothing -> 3"}));
}

// The same options with small numbers: a large model takes a while to draw.
nlohmann::json shrunk(nlohmann::json model) {
  const std::map<std::string, int64_t> small = {{"features", 8}, {"state_size", 8}, {"heads", 2},
                                                {"mlp", 8},      {"layers", 1},     {"out_features", 8}};
  for (const auto& [key, value] : small) {
    if (model["core"].contains(key)) model["core"][key] = value;
  }
  for (const char* coder : {"encoder", "decoder"}) {
    for (auto& depth : model[coder]["depths"]) depth = 4;
  }
  return model;
}

TEST(Config, EveryShippedFileIsValid) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(CONVSSM_SOURCE_DIR) + "/configs")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    SCOPED_TRACE(entry.path());
    const Config config = Config::from_json(io::read_yaml(entry.path().string()));
    EXPECT_NO_THROW(evaluate::EvaluateOptions::from_json(config.evaluate));
    EXPECT_NO_THROW(make_dataset(config));
    EXPECT_NO_THROW(models::make_model(shrunk(config.model), {1, 16, 16}));
  }
  EXPECT_GE(files, 11);
}

}  // namespace
}  // namespace convssm::train
