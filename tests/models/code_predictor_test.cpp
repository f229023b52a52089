// The models of codes, with and without TECO, against an independent NumPy computation (tools/golden/make_codes.py):
// losses by name, the most likely futures, gradients.
#include "convssm/models/codes/code_predictor.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/models/code_golden.h"

namespace convssm::models {
namespace {

using testing::CodeGolden;
using testing::distance;
using testing::expect_error;
using testing::some_codes;

class GoldenCodes : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenCodes, LossAndItsParts) {
  const CodeGolden golden(GetParam());
  for (const auto& [variant, about] : golden.variants.items()) {
    SCOPED_TRACE(variant);
    const auto model = golden.model(variant);
    const LossOutput out = testing::loss_with(*model, golden.clips(), golden.choices(variant));
    const double expected = golden.number(variant + ".loss");
    EXPECT_NEAR(out.loss.item<double>(), expected, 1e-9 * expected);
    size_t compared = 0;
    for (const auto& [name, value] : out.parts) {
      if (name == "used" || name == "perplexity") continue;
      const double part = golden.number(variant + "." + name);
      EXPECT_NEAR(value.item<double>(), part, 1e-9 * std::abs(part)) << name;
      ++compared;
    }
    EXPECT_EQ(compared, about["model"]["name"] == "teco" ? 4u : 2u);
    EXPECT_EQ(parameter_count(*model), golden.read("parameter_count").item<int64_t>());
    model->to(at::kFloat);
    const double single = testing::loss_with(*model, golden.clips(), golden.choices(variant)).loss.item<double>();
    EXPECT_NEAR(single, expected, 5e-6 * expected);
  }
}

// One action of the first clip is masked: its frame is forecast from what was forecast before it.
TEST_P(GoldenCodes, TheMostLikelyFuture) {
  const CodeGolden golden(GetParam());
  const int64_t K = golden.read("context").item<int64_t>();
  for (const auto& [variant, about] : golden.variants.items()) {
    SCOPED_TRACE(variant);
    const auto model = golden.model(variant, true);
    Tokenizer& tokenizer = *model->as_tokenizer();
    Forecaster& forecaster = forecaster_of(*model);
    const at::Tensor expected = tokenizer.decode(golden.read(variant + ".rollout")), actions = golden.actions();
    const at::Tensor seen = tokenizer.decode(golden.clips().codes.slice(1, 0, K));
    State state = forecaster.start({seen, actions.slice(1, 0, K)}, {});
    const int64_t N = expected.size(1);
    EXPECT_LT(distance(forecaster.next_frames(state, actions.slice(1, K, K + N), N).frame, expected), 1e-12);
    for (int64_t k = 0; k < N; ++k) {
      Forecast out = forecaster.next(state, actions.select(1, K + k));
      EXPECT_LT(distance(out.frame, expected.select(1, k)), 1e-12) << k;
      state = out.state;
    }
    // The clip with all its actions, alone: open loop under causal masking.
    const at::Tensor own = actions.slice(0, 3, 4);
    const State alone = forecaster.start({seen.slice(0, 3, 4), own.slice(1, 0, K)}, {});
    const int64_t hidden = about["model"].value("/causal_masking/context"_json_pointer, int64_t{1000});
    EXPECT_EQ(forecaster.frames_at_once(alone, own) > 1, K >= hidden);
    EXPECT_LT(distance(forecaster.next_frames(alone, own.slice(1, K, K + N), N).frame[0], expected[3]), 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenCodes,
                         ::testing::Values("codes_flat", "codes_deep", "codes_transformer", "teco_convs5",
                                           "teco_transformer"),
                         [](const auto& i) { return i.param; });

TEST(CodePredictor, GradientsOfEveryParameter) {
  for (const char* name : {"codes_deep", "codes_transformer"}) {
    for (const char* variant : {"masked", "open"}) {
      SCOPED_TRACE(std::string(name) + " " + variant);
      const CodeGolden golden(name);
      const auto model = golden.model(variant);
      const Clips clips = golden.clips();
      const Choices choices = golden.choices(variant);
      const auto loss = [&] { return testing::loss_with(*model, clips, choices).loss; };
      loss().backward();
      for (const auto& item : model->named_parameters()) {
        testing::expect_gradient(item.key(), item.value(), item.value().grad(), [&] { return loss().item<double>(); });
      }
    }
  }
}

nlohmann::json small_codes() {
  return {{"name", "codes"},
          {"codebook", {{"count", 6}, {"height", 4}, {"width", 4}, {"features", 3}}},
          {"encoder", {{"depths", {4}}}},
          {"decoder", {{"depths", {6}}, {"blocks", 1}}},
          {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}}},
          {"actions", 3},
          {"action_features", 2}};
}

TEST(CodePredictor, TheLossInChunksIsTheLoss) {
  for (const char* name : {"convs5", "convrnn", "convlstm", "convgru", "s5"}) {
    nlohmann::json section = small_codes();
    section["core"] = {{"name", name}, {"features", 8}};
    if (std::string(name).ends_with("s5")) section["core"]["state_size"] = 8;
    if (!std::string(name).ends_with("s5")) section["core"]["layers"] = 2;
    const auto model = make_model(section, {1, 1, 1});
    model->to(at::kDouble);
    EXPECT_EQ(model->obstacle_to_chunks(), "") << name;
    Clips clips;
    clips.codes = some_codes({2, 8, 4, 4}, 6, 1), clips.actions = some_codes({2, 8}, 3, 2);
    const double whole = model->loss(clips, {}).loss.item<double>();
    double sum = 0;
    State state;
    for (const auto& [begin, end] : {std::pair{0, 3}, std::pair{3, 4}, std::pair{4, 7}}) {
      const LossOutput out = model->loss(data::frames_of(clips, begin, end + 1), {}, state);
      sum += out.loss.item<double>() * (end - begin) / 7;
      state = out.state;
    }
    EXPECT_NEAR(sum, whole, 1e-10 * whole) << name;
  }
}

TEST(CodePredictor, SaysWhyALossCannotBeTakenInChunks) {
  const auto obstacle = [](const nlohmann::json& change) {
    nlohmann::json section = small_codes();
    section.update(change);
    return make_model(section, {1, 1, 1})->obstacle_to_chunks();
  };
  EXPECT_NE(obstacle({{"drop_loss", 0.5}}).find("drop_loss"), std::string::npos);
  EXPECT_NE(obstacle({{"causal_masking", {{"context", 2}}}}).find("causal_masking"), std::string::npos);
  EXPECT_NE(obstacle({{"core", {{"name", "transformer"}, {"features", 8}, {"heads", 2}}}}).find("does not grow"),
            std::string::npos);
}

TEST(CodePredictor, WithoutATokenizerItForecastsNothing) {
  const auto model = make_model(small_codes(), {1, 1, 1});
  EXPECT_EQ(model->as_forecaster(), nullptr);
  EXPECT_EQ(model->as_tokenizer(), nullptr);
  expect_error([&] { forecaster_of(*model); }, {"no forecasts", "code predictor"});
  Clips video{at::zeros({1, 3, 1, 4, 4})};
  expect_error([&] { model->loss(video, {}); }, {"no tokenizer", "codes"});
  expect_error([&] { model->loss({}, {}); }, {"frames"});
}

TEST(CodePredictor, SaysWhatIsWrongWithItsOptions) {
  const auto make = [](const nlohmann::json& change) {
    nlohmann::json section = small_codes();
    section.merge_patch(change);  // null takes an option away
    make_model(section, {1, 1, 1});
  };
  expect_error([&] { make({{"temperature", 0}}); }, {"temperature", "above 0", "top_k: 1"});
  expect_error([&] { make({{"temperature", -1.5}}); }, {"temperature", "-1.5"});
  expect_error([&] { make({{"top_k", -1}}); }, {"top_k", "-1"});
  expect_error([&] { make({{"temprature", 1}}); }, {"temprature", "temperature"});
  expect_error([&] { make({{"causal_masking", {{"contxt", 3}}}}); }, {"contxt", "context"});
  expect_error([&] { make({{"causal_masking", {{"context", 0}}}}); }, {"causal_masking", "at least 1", "0"});
  expect_error([&] { make({{"drop_loss", 1.0}}); }, {"drop_loss", "[0,1)", "1"});
  expect_error([&] { make({{"label_smoothing", 1}}); }, {"label_smoothing", "1"});
  expect_error([&] { make({{"codebook", {{"count", 6}, {"hight", 4}}}}); }, {"hight", "height"});
  expect_error([&] { make({{"codebook", {{"count", 1}, {"height", 4}, {"width", 4}}}}); }, {"count", "at least 2"});
  expect_error([&] { make({{"tokenizer", testing::shades(6, 4, 4, 3)}}); }, {"either", "tokenizer", "both"});
  expect_error([&] { make({{"codebook", nullptr}}); }, {"either", "codebook", "neither"});
  expect_error([&] { make({{"encoder", {{"depths", {4, 8}}}}}); }, {"as many depths", "2 and 1"});
  expect_error(
      [&] {
        make({{"encoder", {{"depths", {4, 4, 4, 4}}}}, {"decoder", {{"depths", {4, 4, 4, 4}}}}});
      },
      {"4 depths", "4 x 4"});
  nlohmann::json pixel = testing::shades(6, 4, 4, 3);
  pixel.update({{"name", "pixel"}, {"encoder", {{"depths", {4}}}}, {"decoder", {{"depths", {4}}}}});
  pixel.update({{"core", {{"name", "convs5"}, {"features", 4}, {"state_size", 4}}}});
  pixel.erase("count"), pixel.erase("features");
  expect_error([&] { make({{"codebook", nullptr}, {"tokenizer", pixel}}); }, {"no tokenizer", "pixel"});
}

TEST(CodePredictor, SaysWhatIsWrongWithItsClips) {
  nlohmann::json section = small_codes();
  section["causal_masking"] = {{"context", 3}};
  const auto model = make_model(section, {1, 1, 1});
  const auto loss = [&](const at::Tensor& codes, const at::Tensor& actions = {}) {
    Clips clips;
    clips.codes = codes, clips.actions = actions;
    model->loss(clips, {});
  };
  const at::Tensor good = some_codes({2, 5, 4, 4}, 6, 1);
  EXPECT_NO_THROW(loss(good));
  EXPECT_NO_THROW(loss(good.slice(1, 0, 4)));
  EXPECT_NO_THROW(loss(good.slice(1, 0, 2))) << "memory is measured on short clips";
  EXPECT_NO_THROW(model->check_length(4));
  expect_error([&] { model->check_length(3); }, {"causal_masking.context = 3", "3 frames", "train.frames"});
  expect_error([&] { loss(good.slice(1, 0, 1)); }, {"at least 2 frames"});
  expect_error([&] { loss(good + 1); }, {"0 to 5"});
  expect_error([&] { loss(good - 1); }, {"0 to 5"});
  expect_error([&] { loss(good.slice(2, 0, 3)); }, {"[B,T,4,4]"});
  expect_error([&] { loss(good, at::full({2, 5}, 3, at::kLong)); }, {"below model.actions = 3", "3"});
  expect_error([&] { loss(good, at::zeros({2, 5, 2})); }, {"whole numbers"});
  data::DataFormat data;
  data.codes = {7, 4, 4}, data.actions = {3};
  expect_error([&] { model->check_data(data); }, {"4 x 4 of 7 codes", "of 6"});
  data.codes = {6, 4, 4}, data.actions = {5};
  expect_error([&] { model->check_data(data); }, {"5 actions", "3", "model.actions=5"});
  data.actions = {};
  expect_error([&] { model->check_data(data); }, {"takes actions", "has none"});
  data.actions = {3};
  EXPECT_NO_THROW(model->check_data(data));
  data.codes = {};
  expect_error([&] { model->check_data(data); }, {"takes codes", "data encode"});
  for (const int64_t actions : {0, 1}) {
    section["actions"] = actions;
    data.codes = {6, 4, 4}, data.actions = {};
    expect_error([&] { make_model(section, {1, 1, 1})->check_data(data); }, {"causal_masking", "the data has none"});
  }
  section["actions"] = 0, data.actions = {3};
  expect_error([&] { make_model(section, {1, 1, 1})->check_data(data); }, {"causal_masking", "model takes none"});
}

TEST(CodePredictor, CodesOfAnotherTokenizerAreRefused) {
  nlohmann::json section = testing::with_shades(small_codes());
  section["tokenizer"]["hash"] = "aaaa";
  const auto model = make_model(section, {1, 1, 1});
  data::DataFormat data;
  data.actions = {3};
  data.codes = {6, 4, 4, "bbbb"};
  expect_error([&] { model->check_data(data); }, {"another tokenizer", "bbbb", "aaaa"});
  data.codes.tokenizer = "aaaa";
  EXPECT_NO_THROW(model->check_data(data));
  data.codes.tokenizer = "";
  EXPECT_NO_THROW(model->check_data(data)) << "nobody knows";
  data.codes = {}, data.frames = {1, 4, 4};
  EXPECT_NO_THROW(model->check_data(data));
  data.frames = {1, 8, 4};
  expect_error([&] { model->check_data(data); }, {"4 x 4", "8 x 4"});
  data.frames = {1, 4, 4, 0, 1};
  expect_error([&] { model->check_data(data); }, {"0 to 255", "0 to 1"});
}

// Loss of a video = loss of its codes.
TEST(CodePredictor, TakesFramesOrTheirCodes) {
  const auto model = make_model(testing::with_shades(small_codes()), {1, 1, 1});
  Clips codes, video;
  codes.codes = some_codes({2, 5, 4, 4}, 6, 1);
  video.video = model->as_tokenizer()->decode(codes.codes);
  EXPECT_EQ(model->loss(codes, {}).loss.item<double>(), model->loss(video, {}).loss.item<double>());
  EXPECT_FALSE(model->as_tokenizer()->embed(codes.codes[0]).requires_grad());
  const std::vector<Player> players = model->players();
  ASSERT_EQ(players.size(), 1u);
  for (const auto& [name, value] : players[0].parameters) EXPECT_FALSE(name.starts_with("tokenizer")) << name;
  EXPECT_EQ(parameter_count(*model) - learned_count(*model), 6 * 3);
}

}  // namespace
}  // namespace convssm::models
