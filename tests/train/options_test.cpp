// The `train` section and the schedule.
#include "convssm/train/options.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support.h"

namespace convssm::train {
namespace {

using testing::expect_error;

TEST(Schedule, WarmUpThenHalfACosine) {
  PlayerOptions o;
  o.warmup = 100, o.lr = 2;
  EXPECT_EQ(learning_rate(o, 0, 1000), 0);
  EXPECT_DOUBLE_EQ(learning_rate(o, 50, 1000), 1);
  EXPECT_DOUBLE_EQ(learning_rate(o, 100, 1000), 2);
  EXPECT_DOUBLE_EQ(learning_rate(o, 550, 1000), 1);
  EXPECT_NEAR(learning_rate(o, 325, 1000), 2 * 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(learning_rate(o, 1000, 1000), 0, 1e-15);
  o.schedule = Schedule::cosine_short;  // over steps - 2 warmup
  EXPECT_DOUBLE_EQ(learning_rate(o, 500, 1000), 1);
  EXPECT_NEAR(learning_rate(o, 900, 1000), 0, 1e-15);
  EXPECT_NEAR(learning_rate(o, 950, 1000), 0, 1e-15);
  o.schedule = Schedule::constant;
  EXPECT_EQ(learning_rate(o, 999, 1000), 2);
  o.warmup = 0;
  EXPECT_EQ(learning_rate(o, 0, 1000), 2);
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
  wrong("frames", 0, {"positive", "0"});
  wrong("log_interval", -1, {"0 or positive", "-1"});
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

TEST(TrainOptions, PlayersGoOnInheriting) {
  const nlohmann::json json = {
      {"warmup", 0},
      {"lr", 0.1},
      {"players", {{"discriminator", {{"beta1", 0.5}, {"lr", 0.1}}}, {"generator", {{"lr", 0.1}}}}}};
  nlohmann::json written = TrainOptions::from_json(json).to_json();
  EXPECT_EQ(written["players"], (nlohmann::json{{"discriminator", {{"beta1", 0.5}}}}));
  EXPECT_EQ(TrainOptions::from_json(written).to_json(), written);
  written["lr"] = 0.2;
  written["schedule"] = "constant";
  const PlayerOptions own = TrainOptions::from_json(written).player("discriminator");
  EXPECT_EQ(own.lr, 0.2);
  EXPECT_EQ(own.beta1, 0.5);
  EXPECT_EQ(own.schedule, Schedule::constant);
  written["players"]["discriminator"]["schedule"] = "cosine";
  EXPECT_EQ(TrainOptions::from_json(written).to_json()["players"]["discriminator"]["schedule"], "cosine");
}

TEST(TrainOptions, AWrongValueOfAPlayerNamesThePlayer) {
  const auto wrong = [](const char* key, const nlohmann::json& value, const char* part) {
    const nlohmann::json json = {{"warmup", 0}, {"players", {{"discriminator", {{key, value}}}}}};
    expect_error([&] { TrainOptions::from_json(json); }, {"[train] players.discriminator: ", key, part});
  };
  wrong("lr", -1, "positive");
  wrong("beta2", 1, "[0,1)");
  wrong("start", -3, "between 0");
  wrong("schedule", "linear", "cosine_short");
}

TEST(TrainOptions, ChunksAreChosenUnlessTheyAreGiven) {
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

}  // namespace
}  // namespace convssm::train
