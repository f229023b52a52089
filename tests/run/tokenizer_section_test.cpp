// Models of codes on a trained tokenizer: its path becomes a section, its weights are in the model's file, it stays what it
// was; a training goes on exactly; codes of another tokenizer are refused.
#include "convssm/run/tokenizer_section.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convssm/io/safetensors.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/tokenizer.h"
#include "convssm/run/encode.h"
#include "convssm/run/model_file.h"
#include "convssm/run/training_run.h"
#include "tests/base/scratch_folder.h"
#include "tests/run/log_scores.h"
#include "tests/support.h"

namespace convssm::run {
namespace {

using testing::expect_error;

const nlohmann::json kCodeData = {{"name", "maze"}, {"image_size", 12}, {"size", 3}, {"clips", 4}, {"test_clips", 2}};

nlohmann::json train_section(int64_t steps) {
  return {{"steps", steps},     {"batch", 2},     {"frames", 4},          {"warmup", 1},          {"log_interval", 1},
          {"save_interval", 2}, {"keep_last", 9}, {"sample_clips", 1},    {"sample_interval", 4}, {"sample_context", 2},
          {"sample_frames", 2}, {"workers", 0},   {"action_dropout", 0.5}};
}

nlohmann::json tokenizer_config(uint64_t seed) {
  nlohmann::json train = train_section(2);
  train["action_dropout"] = 0;
  return {{"seed", seed},
          {"model",
           {{"name", "vqgan"},
            {"features", 4},
            {"multipliers", {1, 2}},
            {"blocks", 1},
            {"attention", nlohmann::json::array()},
            {"latent", 4},
            {"groups", 2},
            {"perceptual", "none"},
            {"quantizer", {{"name", "ema"}, {"size", 16}, {"features", 4}}},
            {"discriminator", {{"features", 2}, {"layers", 1}}}}},
          {"data", kCodeData},
          {"train", train}};
}

nlohmann::json code_config(const std::string& name, const nlohmann::json& tokenizer) {
  nlohmann::json model = {{"name", name},
                          {"tokenizer", tokenizer},
                          {"encoder", {{"depths", {4}}}},
                          {"decoder", {{"depths", {4}}, {"blocks", 1}}},
                          {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}}},
                          {"actions", 6},
                          {"action_features", 2},
                          {"causal_masking", {{"context", 2}}}};
  if (name == "teco") {
    model.update(
        {{"encoder", {{"depths", {4, 8}}}},
         {"decoder", {{"depths", {4, 8}}, {"blocks", 1}}},
         {"features", 4},
         {"drop_loss", 0.5},
         {"quantizer", {{"name", "cosine"}, {"size", 8}, {"features", 4}}},
         {"maskgit", {{"vocabulary", 4}, {"features", 8}, {"layers", 1}, {"heads", 2}, {"draft", 2}, {"revise", 2}}}});
  }
  return {{"model", model}, {"data", kCodeData}, {"train", train_section(4)}};
}

void train_codes(const nlohmann::json& json, const std::string& run, bool resume = false) {
  RunFolder folder(run);
  TrainingRun training(with_tokenizer(Config::from_json(json)), folder, resume);
  const StopRequest stop;
  EXPECT_EQ(training.run(stop), train::Outcome::finished);
}

// One tokenizer for all tests.
class CodeRuns : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<ScratchFolder>();
    train_codes(tokenizer_config(1), tokenizer());
    train_codes(tokenizer_config(2), other());
  }
  static void TearDownTestSuite() { scratch_.reset(); }
  static std::string tokenizer() { return scratch_->path("tokenizer"); }
  static std::string other() { return scratch_->path("other"); }
  static std::string path(const std::string& name) { return scratch_->path(name); }

  static inline std::unique_ptr<ScratchFolder> scratch_;
};

void expect_same_tokenizer(models::Model& a, models::Model& b) {
  const auto of_a = a.tokenizer_part().module->named_parameters(), of_b = b.tokenizer_part().module->named_parameters();
  ASSERT_EQ(of_a.size(), of_b.size());
  for (const auto& item : of_a) EXPECT_TRUE(item.value().equal(of_b[item.key()])) << item.key();
  EXPECT_EQ(models::hash_of(a.tokenizer_part()), models::hash_of(b.tokenizer_part()));
}

TEST_F(CodeRuns, APathBecomesASection) {
  const Config config = with_tokenizer(Config::from_json(code_config("codes", tokenizer())));
  const nlohmann::json& section = config.model["tokenizer"];
  const LoadedModel loaded = load_model(tokenizer());
  EXPECT_EQ(section["name"], "vqgan");
  EXPECT_EQ(section["weights"], tokenizer());
  EXPECT_EQ(section["hash"], models::hash_of(loaded.model->tokenizer_part()));
  EXPECT_EQ(section["hash"].get<std::string>().size(), 16u);
  EXPECT_TRUE(frames_of(config).same_size(loaded.recipe.frames));
  EXPECT_EQ(with_tokenizer(config).to_json(), config.to_json()) << "a section stays";
  Config begun = config;
  begun.model["tokenizer"]["weights"] = "gone";
  const Config again = with_tokenizer(Config::from_json(code_config("codes", "gone")), begun);
  EXPECT_EQ(again.model["tokenizer"], begun.model["tokenizer"]) << "a run that goes on has it";
  const auto model = make_model(config, frames_of(config));
  EXPECT_NE(models::hash_of(model->tokenizer_part()), section["hash"]);
  load_tokenizer(*model, config);
  expect_same_tokenizer(*model, *loaded.model);
}

TEST_F(CodeRuns, SaysWhatIsNoTokenizer) {
  expect_error([&] { with_tokenizer(Config::from_json(code_config("codes", path("nowhere")))); }, {"nowhere"});
  nlohmann::json pixel = {{"model",
                           {{"encoder", {{"depths", {4}}}},
                            {"decoder", {{"depths", {4}}}},
                            {"actions", 6},
                            {"core", {{"name", "convs5"}, {"features", 4}, {"state_size", 4}}}}},
                          {"data", kCodeData},
                          {"train", train_section(1)}};
  train_codes(pixel, path("pixel"));
  expect_error([&] { with_tokenizer(Config::from_json(code_config("codes", path("pixel")))); },
               {"no tokenizer", "pixel predictor", "configs/tokenizer"});
  Config sizes = with_tokenizer(Config::from_json(code_config("codes", tokenizer())));
  sizes.model["tokenizer"].erase("weights");
  expect_error([&] { train_codes(sizes.to_json(), path("sizes")); }, {"weights", "model.tokenizer=runs/tokenizer"});
  Config moved = with_tokenizer(Config::from_json(code_config("codes", tokenizer())));
  moved.model["tokenizer"]["weights"] = other();
  expect_error([&] { train_codes(moved.to_json(), path("moved")); }, {"another one now"});
}

TEST_F(CodeRuns, StoppedAndResumedEndsWithTheSameBits) {
  for (const std::string name : {"codes", "teco"}) {
    SCOPED_TRACE(name);
    const nlohmann::json json = code_config(name, tokenizer());
    const std::string whole = path(name + "-whole"), parts = path(name + "-parts");
    train_codes(json, whole);
    std::filesystem::copy(whole, parts, std::filesystem::copy_options::recursive);
    for (const char* end : {".json", ".safetensors"}) {
      std::filesystem::remove(parts + "/checkpoints/step-000004" + end);
    }
    train_codes(json, parts, true);
    const io::SafetensorsFile a(whole + "/checkpoints/step-000004.safetensors"),
        b(parts + "/checkpoints/step-000004.safetensors");
    for (const std::string& key : a.names())
      EXPECT_TRUE(std::ranges::equal(a.read(key).bytes(), b.read(key).bytes())) << key;
    EXPECT_EQ(testing::log_scores(parts), testing::log_scores(whole));

    // One file runs, with the tokenizer as it was.
    const LoadedModel loaded = load_model(whole), alone = load_model(tokenizer());
    expect_same_tokenizer(*loaded.model, *alone.model);
    EXPECT_TRUE(loaded.recipe.frames.same_size(alone.recipe.frames));
    loaded.model->train();
    EXPECT_FALSE(loaded.model->tokenizer_part().module->is_training());
    EXPECT_TRUE(loaded.model->is_training());
    for (const auto& player : loaded.model->players()) {
      for (const auto& [key, value] : player.parameters) EXPECT_FALSE(key.starts_with("tokenizer")) << key;
    }
    // The tokenizer of such a run is one too.
    const Config again = with_tokenizer(Config::from_json(code_config("codes", whole)));
    EXPECT_EQ(again.model["tokenizer"]["hash"], models::hash_of(alone.model->tokenizer_part()));
    EXPECT_EQ(again.model["tokenizer"]["name"], "vqgan");
    const auto model = make_model(again, frames_of(again));
    load_tokenizer(*model, again);
    expect_same_tokenizer(*model, *alone.model);
  }
}

TEST_F(CodeRuns, ClipsThatEndBeforeTheContextIsOverAreRefused) {
  nlohmann::json json = code_config("teco", tokenizer());
  json["train"]["frames"] = 2;
  expect_error([&] { train_codes(json, path("short")); }, {"causal_masking.context = 2", "2 frames", "train.frames"});
}

TEST_F(CodeRuns, ForecastsThatAreDrawnAreNotFedBack) {
  nlohmann::json json = code_config("teco", tokenizer());
  json["train"]["self_feed"] = 0.5;
  expect_error([&] { train_codes(json, path("fed")); }, {"self_feed must be 0", "draws"});
  json = code_config("codes", tokenizer());  // most likely codes are, but not frames
  json["train"]["self_feed"] = 0.5;
  expect_error([&] { train_codes(json, path("fed")); }, {"encoded", "got frames"});
}

TEST_F(CodeRuns, EncodedClipsTrainTheModelOfTheirTokenizerAndNoOther) {
  const LoadedModel loaded = load_model(tokenizer());
  const auto dataset = make_dataset(Config::from_json(tokenizer_config(1)));
  for (const data::Split split : {data::Split::train, data::Split::test}) {
    const data::WriteOptions options{
        .out = path("encoded"), .split = split, .clips = dataset->size(split), .frames = 6};
    encode_clips(*loaded.model, *dataset, options, [](int64_t) {});
  }
  nlohmann::json json = code_config("codes", tokenizer());
  json["data"] = {{"name", "folder"}, {"path", path("encoded")}, {"valid_fraction", 0.3}};
  train_codes(json, path("on-codes"));
  const auto lines = testing::log_scores(path("on-codes"));
  EXPECT_TRUE(std::ranges::any_of(lines, [](const nlohmann::json& line) { return line.contains("validation"); }));
  json["model"]["tokenizer"] = other();
  expect_error([&] { train_codes(json, path("refused")); }, {"another tokenizer", "encode the data"});
  // Without a tokenizer the codes are enough.
  json["model"].erase("tokenizer");
  json["model"]["codebook"] = {{"count", 16}, {"height", 6}, {"width", 6}, {"features", 4}};
  train_codes(json, path("codebook"));
  // A run on codes makes frames of another kind of data too: what it was given is part of its file.
  at::NoGradGuard no_grad;
  const LoadedModel trained = load_model(path("on-codes"));
  const data::Clips clip = dataset->clip(data::Split::test, 0, 3);
  models::Forecaster& forecaster = models::forecaster_of(*trained.model);
  const models::Forecast next = forecaster.next(forecaster.start(clip, {1}), at::zeros({1}, at::kLong));
  EXPECT_EQ(next.frame.sizes(), clip.video.select(1, 0).sizes());
}

}  // namespace
}  // namespace convssm::run
