// TECO: gradients piece by piece, what a training step draws, and bad use. Its numbers are tested with those of the code
// model (code_predictor_test.cpp), its laws too (code_laws_test.cpp).
#include "convssm/models/teco/teco.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "tests/models/code_golden.h"

namespace convssm::models {
namespace {

using testing::CodeGolden;
using testing::expect_error;
using testing::some_codes;

bool starts_with_any(const std::string& name, const std::vector<std::string>& starts) {
  return std::ranges::any_of(starts, [&](const std::string& start) { return name.starts_with(start); });
}

// What comes after the quantizer: the loss is smooth in it as long as no token changes.
TEST(Teco, GradientsOfEveryParameterAfterTheQuantizer) {
  for (const auto& [name, variant] : {std::pair{"teco_convs5", "dropped"}, std::pair{"teco_transformer", "masked"}}) {
    SCOPED_TRACE(std::string(name) + " " + variant);
    const CodeGolden golden(name);
    const auto model = golden.model(variant);
    model->eval();
    const Clips clips = golden.clips();
    const Choices choices = golden.choices(variant);
    const auto loss = [&] { return testing::loss_with(*model, clips, choices); };
    loss().loss.backward();
    int tested = 0;
    for (const auto& item : model->named_parameters()) {
      if (!starts_with_any(item.key(), {"core.", "actions", "prior.", "decoder.", "project_out"})) continue;
      testing::expect_gradient(item.key(), item.value(), item.value().grad(),
                               [&] { return loss().loss.item<double>(); });
      ++tested;
    }
    EXPECT_GT(tested, 50);
    // The table learns by its own loss alone.
    auto named = model->named_parameters();
    at::Tensor& table = named["quantizer.embedding.weight"];
    testing::expect_gradient("table", table, table.grad(),
                             [&] { return testing::part_of(loss(), "codebook").item<double>(); });
    for (const char* early : {"encoder.first.weight", "to_latent.weight", "project_in", "before_first", "codebook"}) {
      ASSERT_TRUE(named[early].grad().defined()) << early;
      EXPECT_GT(testing::max_abs(named[early].grad()), 0) << early;
    }
  }
}

// Before the quantizer the gradient goes straight through. With the forecast of a clip of two frames from z_0 alone, which
// is not quantized, it is the true one: the prior sees z_0 by the core, and the second frame by constants.
TEST(Teco, GradientsBeforeTheQuantizerThroughTheFirstFrame) {
  const CodeGolden golden("teco_convs5");
  const auto model = golden.model("all");
  model->eval();
  Clips clips = data::frames_of(golden.clips(), 0, 2);
  Choices choices{{0}, golden.choices("all").hidden.slice(0, 0, 4)};
  auto named = model->named_parameters();
  at::Tensor& before = named["before_first"];  // reaches the first frame only
  const LossOutput out = testing::loss_with(*model, clips, choices);
  const at::Tensor gradient = torch::autograd::grad({out.loss}, {before})[0];
  testing::expect_gradient("before_first", before, gradient, [&] {
    const LossOutput o = testing::loss_with(*model, clips, choices);
    // The table stands still for what is committed to it.
    return (testing::part_of(o, "recon") + testing::part_of(o, "prior") + testing::part_of(o, "commitment"))
        .item<double>();
  });
}

nlohmann::json small_teco() {
  return {{"name", "teco"},
          {"codebook", {{"count", 6}, {"height", 4}, {"width", 4}, {"features", 3}}},
          {"encoder", {{"depths", {4, 8}}}},
          {"decoder", {{"depths", {4, 8}}, {"blocks", 1}}},
          {"features", 5},
          {"quantizer", {{"name", "cosine"}, {"size", 8}, {"features", 4}}},
          {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}}},
          {"maskgit", {{"vocabulary", 6}, {"features", 8}, {"layers", 1}, {"heads", 2}}},
          {"actions", 3},
          {"action_features", 2}};
}

TEST(Teco, ALossIsAFunctionOfItsStream) {
  nlohmann::json section = small_teco();
  section["drop_loss"] = 0.5;
  const auto model = make_model(section, {1, 1, 1});
  Clips clips;
  clips.codes = some_codes({2, 9, 4, 4}, 6, 1), clips.actions = some_codes({2, 9}, 3, 2);
  model->eval();
  const auto loss = [&](uint64_t seed) {
    return model->loss(clips, {"model", 0, 1, Stream(seed)}).loss.item<double>();
  };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
  const LossOutput out = model->loss(clips, {});
  std::vector<std::string> names;
  for (const auto& [name, value] : out.parts) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"recon", "prior", "commitment", "codebook"}));
  model->train();
  EXPECT_EQ(model->loss(clips, {}).parts.size(), 6u);
  EXPECT_FALSE(model->obstacle_to_chunks().empty());
}

TEST(Teco, OptionsThatAreNotGivenAreItsOwn) {
  const nlohmann::json table = {{"count", 6}, {"height", 4}, {"width", 4}, {"features", 3}};
  const auto o = TecoOptions::from_json(
      {{"codebook", table}, {"quantizer", {{"size", 512}}}, {"decoder", {{"blocks", 7}}}, {"temperature", 0.5}});
  EXPECT_EQ(o.quantizer.kind, nn::QuantizerKind::cosine);
  EXPECT_EQ(o.quantizer.size, 512);
  EXPECT_EQ(o.quantizer.features, 32);
  EXPECT_EQ(o.decoder.depths, (std::vector<int64_t>{256, 512}));
  EXPECT_EQ(o.decoder.blocks, 7);
  EXPECT_EQ(o.encoder.blocks, 2);
  EXPECT_EQ(o.draft.sampling.temperature, 0.5);
}

TEST(Teco, TakesOtherQuantizers) {
  Clips clips;
  clips.codes = some_codes({2, 5, 4, 4}, 6, 1);
  for (const nlohmann::json& quantizer : {nlohmann::json{{"name", "gradient"}, {"size", 8}, {"features", 4}},
                                          nlohmann::json{{"name", "ema"}, {"size", 8}, {"features", 4}},
                                          nlohmann::json{{"name", "fsq"}, {"levels", {4, 2}}}}) {
    nlohmann::json section = small_teco();
    section["quantizer"] = quantizer;
    const auto model = make_model(section, {1, 1, 1});
    const LossOutput out = model->loss(clips, {});
    EXPECT_TRUE(std::isfinite(out.loss.item<double>())) << quantizer;
    EXPECT_NO_THROW(out.loss.backward()) << quantizer;
  }
}

TEST(Teco, SaysWhatIsWrong) {
  const auto make = [](const nlohmann::json& change) {
    nlohmann::json section = small_teco();
    section.merge_patch(change);
    return make_model(section, {1, 1, 1});
  };
  expect_error([&] { make({{"maskgit", {{"shedule", "cosine"}}}}); }, {"shedule", "schedule"});
  expect_error([&] { make({{"maskgit", {{"schedule", "cos"}}}}); }, {"cos", "cosine"});
  expect_error([&] { make({{"maskgit", {{"draft", 0}}}}); }, {"draft", "at least 1"});
  expect_error([&] { make({{"maskgit", {{"rounds", -1}}}}); }, {"rounds", "-1"});
  expect_error([&] { make({{"maskgit", {{"heads", 3}}}}); }, {"heads"});
  expect_error([&] { make({{"features", 0}}); }, {"features must be positive"});
  expect_error([&] { make({{"quantiser", 3}}); }, {"quantiser", "quantizer"});
  expect_error([&] { make({{"temperature", 0}}); }, {"temperature", "above 0"});
  expect_error([&] { make({{"encoder", {{"depths", {4}}}}}); }, {"as many depths"});
  const auto masked = make({{"causal_masking", {{"context", 4}}}});
  Clips clips;
  clips.codes = some_codes({1, 4, 4, 4}, 6, 1);
  EXPECT_NO_THROW(masked->loss(clips, {})) << "memory is measured on short clips";
  EXPECT_NO_THROW(masked->check_length(5));
  expect_error([&] { masked->check_length(4); }, {"causal_masking.context = 4", "4 frames", "train.frames"});
  expect_error([&] { masked->loss(data::frames_of(clips, 0, 1), {}); }, {"at least 2 frames"});
}

}  // namespace
}  // namespace convssm::models
