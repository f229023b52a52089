// The config of a run as a whole, and the files that come with the project.
#include "convssm/run/config.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "convssm/evaluate/evaluate.h"
#include "convssm/io/yaml.h"
#include "convssm/models/registry.h"
#include "tests/support.h"

namespace convssm::run {
namespace {

using testing::expect_error;

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

TEST(Config, ASectionThatWasEmptyMayBeFilled) {
  const auto config = [](const nlohmann::json& more = nlohmann::json::object()) {
    nlohmann::json json = {{"model", {{"core", {{"name", "convs5"}}}}}, {"data", {{"name", "moving-mnist"}}}};
    json["train"] = {{"warmup", 0}};
    json.update(more);
    return Config::from_json(json).to_json();
  };
  const auto found = differences(config(), config({{"evaluate", {{"samples", 8}}}}));
  EXPECT_EQ(found, std::vector<std::string>{"evaluate.samples: nothing -> 8"});
  EXPECT_TRUE(std::ranges::all_of(found, may_change));
  EXPECT_TRUE(differences(config(), config({{"evaluate", nlohmann::json::object()}})).empty());
  // A list without values is one, a group without options is not.
  const nlohmann::json none = {{"depths", nlohmann::json::array()}}, one = {{"depths", {4}}};
  EXPECT_EQ(differences(nlohmann::json::object(), none), std::vector<std::string>{"depths: nothing -> []"});
  EXPECT_EQ(differences(none, one), (std::vector<std::string>{"depths: [] -> nothing", "depths.0: nothing -> 4"}));
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
}  // namespace convssm::run
