// The config of a run as a whole, and the files that come with the project.
#include "convssm/run/config.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "convssm/base/read_file.h"
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

// Takes the numbers of `small` where the options have one of that name.
void shrink(nlohmann::json& options, const std::map<std::string, int64_t>& small) {
  for (const auto& [key, value] : small) {
    if (options.contains(key)) options[key] = value;
  }
}

// The same options with small numbers: a large model takes a while to draw.
nlohmann::json shrunk(nlohmann::json model) {
  if (model["name"] == "vqgan") {
    model.update({{"features", 8}, {"latent", 8}});
    model["discriminator"]["layers"] = 1;
    return model;
  }
  if (model.contains("tokenizer")) {
    nlohmann::json& tokenizer = model["tokenizer"];
    if (tokenizer.is_string()) {  // a run that is made before
      const nlohmann::json frames = {{"channels", 3}, {"height", 64}, {"width", 64}, {"low", 0}, {"high", 255}};
      tokenizer = {{"name", "vqgan"}, {"frames", frames}, {"discriminator", {{"weight", 0}}}};
      if (model["name"] == "latent_fdm")
        tokenizer.update({{"multipliers", {1, 1, 1, 1}}, {"quantizer", {{"name", "kl"}}}});
    }
    tokenizer = shrunk(tokenizer);
  }
  if (model["name"] == "cwvae") {
    model.update({{"deterministic", 8}, {"embedding", 8}, {"filters", 2}, {"dense_features", 8}});
    return model;
  }
  if (model["name"] == "perceiver_ar") {
    model.update({{"features", 16}, {"heads", 2}, {"layers", 1}});
    return model;
  }
  if (model["name"] == "latent_fdm") {
    model["channels"] = 8;
    return model;
  }
  if (model["name"] == "fitvid") {
    model.update({{"filters", 2}, {"memory", 8}});
    return model;
  }
  shrink(model, {{"features", 8}});
  const std::map<std::string, int64_t> small = {{"features", 8}, {"state_size", 8}, {"heads", 2},       {"mlp", 8},
                                                {"layers", 1},   {"blocks", 1},     {"out_features", 8}};
  shrink(model["core"], small);
  if (model["core"]["name"] == "hybrid") model["core"].update({{"attention_every", 1}, {"heads", 1}});
  if (model.contains("maskgit")) shrink(model["maskgit"], small);
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
    if (config.data.value("name", "") != "folder") {  // recordings are their owners'
      EXPECT_NO_THROW(make_dataset(config));
    }
    EXPECT_NO_THROW(models::make_model(shrunk(config.model), {1, 16, 16}));
  }
  EXPECT_GE(files, 50);
}

// The defaults may fit a first try because the published configs depend on none of them: data/published_train.json is
// what each of them resolved to while the defaults were the paper's.
TEST(Config, PublishedFilesDoNotDependOnDefaults) {
  const std::string source = CONVSSM_SOURCE_DIR;
  const auto expected = nlohmann::json::parse(read_file(source + "/tests/run/data/published_train.json"));
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source + "/configs")) {
    if (!entry.is_regular_file()) continue;
    const std::string name = std::filesystem::relative(entry.path(), source + "/configs").generic_string();
    SCOPED_TRACE(name);
    ASSERT_TRUE(expected.contains(name)) << "a new config: add its line";
    const nlohmann::json config = io::read_yaml(entry.path().string());
    for (const char* key : {"steps", "frames", "warmup"}) EXPECT_TRUE(config["train"].contains(key)) << key;
    EXPECT_EQ(differences(expected[name], Config::from_json(config).train.to_json()), std::vector<std::string>{});
    ++files;
  }
  EXPECT_EQ(files, expected.size());
}

TEST(Config, DefaultsFitAFirstTry) {
  const nlohmann::json sections = {{"model", nlohmann::json::object()}, {"data", nlohmann::json::object()}};
  const auto train = [&](const nlohmann::json& options) {
    nlohmann::json json = sections;
    json["train"] = options;
    return Config::from_json(json).train;
  };
  const train::TrainOptions first = train(nlohmann::json::object());
  EXPECT_LE(first.steps, 2000);
  EXPECT_LE(first.frames, 50);
  EXPECT_EQ(first.optimizer.warmup, first.steps / 10);
  EXPECT_EQ(train({{"steps", 20}}).optimizer.warmup, 2) << "fewer steps need no other change";
  EXPECT_EQ(train({{"steps", 300000}}).optimizer.warmup, 5000);
  EXPECT_EQ(train(io::parse_yaml("{steps: 1e3, lr: 1e-3}", "test")).steps, 1000);
}

}  // namespace
}  // namespace convssm::run
