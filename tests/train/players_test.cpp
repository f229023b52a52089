// Players: each has an optimizer, a schedule, a norm, a start and an average of its own, and none touches another's
// parameters.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "convssm/train/preflight.h"
#include "convssm/train/trainer.h"
#include "tests/models/toy_data.h"
#include "tests/models/toys.h"
#include "tests/support.h"

namespace convssm::train {
namespace {

using testing::distance;
using testing::expect_error;

using Noise = testing::NoiseClips;

struct Lines : TrainObserver {
  void line(int64_t, const nlohmann::json& scores, const nlohmann::json&) override { lines.push_back(scores); }
  std::vector<nlohmann::json> lines;
};

TrainOptions options(const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json json = {{"steps", 6}, {"batch", 2},        {"frames", 3},          {"warmup", 0},
                         {"lr", 0.01}, {"log_interval", 1}, {"sample_interval", 0}, {"workers", 0}};
  json.update(more);
  return TrainOptions::from_json(json);
}

Lines train(models::Model& model, const TrainOptions& o) {
  Lines lines;
  Trainer trainer(model, std::make_shared<Noise>(), o, 1, lines);
  const StopRequest stop;
  EXPECT_EQ(trainer.run(stop), Outcome::finished);
  return lines;
}

std::map<std::string, at::Tensor> values(const models::Model& model) {
  std::map<std::string, at::Tensor> copies;
  for (const auto& item : model.named_parameters()) copies[item.key()] = item.value().detach().clone();
  return copies;
}

TEST(Players, BothLearnAndLogByName) {
  testing::PairModel model;
  const auto before = values(model);
  const Lines found = train(model, options({{"players", {{"discriminator", {{"lr", 0.5}}}}}}));
  const auto after = values(model);
  for (const char* name : {"generator", "scale", "discriminator"}) EXPECT_FALSE(after.at(name).equal(before.at(name)));
  EXPECT_TRUE(after.at("unused").equal(before.at("unused"))) << "a parameter of nobody";
  ASSERT_EQ(found.lines.size(), 6u);
  for (const char* key : {"loss", "grad_norm", "lr", "fooled", "close", "discriminator.loss", "discriminator.grad_norm",
                          "discriminator.lr", "discriminator.hit"}) {
    EXPECT_TRUE(found.lines[0].contains(key)) << key;
  }
  EXPECT_EQ(found.lines[0]["lr"], 0.01);
  EXPECT_EQ(found.lines[0]["discriminator.lr"], 0.5);
}

// The values of a model after its first step.
struct FirstStep : TrainObserver {
  explicit FirstStep(const models::Model& watched) : model(watched) {}
  void progress(int64_t step, const std::string&) override {
    if (step == 1) found = values(model);
  }
  const models::Model& model;
  std::map<std::string, at::Tensor> found;
};

// The first step of the generator alone and of both: the generator's parameters are the same bits, so the discriminator's
// turn has not touched them.
TEST(Players, ATurnLeavesTheOthersBitForBit) {
  const auto first_step = [](const nlohmann::json& players) {
    testing::PairModel model;
    FirstStep observer(model);
    Trainer trainer(model, std::make_shared<Noise>(), options({{"steps", 2}, {"players", players}}), 1, observer);
    const StopRequest stop;
    EXPECT_EQ(trainer.run(stop), Outcome::finished);
    return observer.found;
  };
  const auto initial = values(testing::PairModel());
  const auto both = first_step(nlohmann::json::object()), alone = first_step({{"discriminator", {{"start", 1}}}});
  for (const char* name : {"generator", "scale"}) {
    EXPECT_TRUE(both.at(name).equal(alone.at(name))) << name;
    EXPECT_FALSE(both.at(name).equal(initial.at(name))) << name;
  }
  EXPECT_TRUE(alone.at("discriminator").equal(initial.at("discriminator")));
  EXPECT_FALSE(both.at("discriminator").equal(initial.at("discriminator")));
}

// The gradients and the update of each player by themselves.
TEST(Players, LearnTheirOwnParametersAlone) {
  testing::PairModel model;
  Noise data;
  const data::Clips clips = data.clip(data::Split::train, 0, 3);
  for (const models::Player& player : model.players()) {
    Optimizer optimizer(player, options().optimizer);
    const auto before = values(model);
    const OnlyLearner only(model, player);
    add_gradients(model, clips, {.player = player.name}, 0);
    for (const auto& item : model.named_parameters()) {
      const bool own = std::ranges::any_of(player.parameters, [&](const auto& p) { return p.first == item.key(); });
      EXPECT_EQ(item.value().grad().defined(), own) << item.key() << " in the step of " << player.name;
    }
    optimizer.update(0.1);
    for (const auto& [name, value] : values(model)) {
      const bool own = std::ranges::any_of(player.parameters, [&](const auto& p) { return p.first == name; });
      EXPECT_EQ(value.equal(before.at(name)), !own) << name << " in the step of " << player.name;
    }
    optimizer.clear_gradients();
  }
}

TEST(Players, StartLateAndWithTheirOwnSchedule) {
  testing::PairModel model;
  const Lines found = train(
      model, options({{"schedule", "constant"}, {"players", {{"discriminator", {{"start", 3}, {"warmup", 2}}}}}}));
  EXPECT_FALSE(found.lines[2].contains("discriminator.loss"));
  EXPECT_TRUE(found.lines[3].contains("discriminator.loss"));
  EXPECT_EQ(found.lines[2]["discriminator.lr"], 0);
  EXPECT_EQ(found.lines[3]["discriminator.lr"], 0);
  EXPECT_DOUBLE_EQ(found.lines[4]["discriminator.lr"].get<double>(), 0.005);
  EXPECT_DOUBLE_EQ(found.lines[5]["discriminator.lr"].get<double>(), 0.01);
  PlayerOptions o;
  o.start = 100, o.warmup = 50, o.lr = 2;
  EXPECT_EQ(learning_rate(o, 99, 1000), 0);
  EXPECT_DOUBLE_EQ(learning_rate(o, 125, 1000), 1);
  EXPECT_DOUBLE_EQ(learning_rate(o, 150, 1000), 2);
  EXPECT_NEAR(learning_rate(o, 1000, 1000), 0, 1e-15);
}

// A model that says itself when its discriminator begins, and what of its loss a person should know.
struct LatePair : testing::PairModel {
  std::vector<models::Player> players() const override {
    auto all = testing::PairModel::players();
    all[1].start = 3;
    return all;
  }
  models::LossOutput loss(const models::Clips& clips, const models::LossContext& context,
                          const models::State& state = {}) override {
    asked.emplace_back(context.player, context.step);
    models::LossOutput out = testing::PairModel::loss(clips, context, state);
    out.warning = "step " + std::to_string(context.step);
    return out;
  }
  std::vector<std::pair<std::string, int64_t>> asked;
};

TEST(Players, BeginWhenTheModelSays) {
  LatePair model;
  Lines nobody;
  Trainer trainer(model, std::make_shared<Noise>(), options({{"schedule", "constant"}}), 1, nobody);
  trainer.prepare();
  ASSERT_FALSE(model.asked.empty());
  EXPECT_EQ(model.asked[0].second, 5) << "memory is that of the last step";
  LatePair again;
  const Lines found = train(again, options({{"schedule", "constant"}}));
  EXPECT_FALSE(found.lines[2].contains("discriminator.loss"));
  EXPECT_TRUE(found.lines[3].contains("discriminator.loss"));
  int64_t first = 100;
  for (size_t i = again.asked.size() - 9; i < again.asked.size(); ++i) {  // 6 turns of one, 3 of the other
    if (again.asked[i].first == "discriminator") first = std::min(first, again.asked[i].second);
  }
  EXPECT_EQ(first, 3) << "no turn before";
  LatePair later;
  const Lines both = train(later, options({{"players", {{"discriminator", {{"start", 4}}}}}}));
  EXPECT_FALSE(both.lines[3].contains("discriminator.loss")) << "the later of both";
  EXPECT_TRUE(both.lines[4].contains("discriminator.loss"));
}

TEST(Players, WarningsComeThrough) {
  LatePair model;
  const auto values =
      add_gradients(model, Noise().clip(data::Split::train, 0, 3), {.player = "generator", .step = 2}, 0);
  EXPECT_EQ(values.warning, "step 2");
}

TEST(Players, AverageTheirWeights) {
  at::Tensor p = at::zeros({3});
  p.requires_grad_(true);
  PlayerOptions o;
  o.ema = 0.9, o.weight_decay = 0;
  Optimizer optimizer({"model", {{"p", p}}}, o);
  double average = 0;
  for (int n = 0; n < 40; ++n) {
    p.mutable_grad() = at::full({3}, 0.5f);
    optimizer.update(0.1);
    const double decay = std::min(0.9, (1.0 + n) / (10.0 + n));
    average = decay * average + (1 - decay) * p[0].item<double>();
  }
  const double trained = p[0].item<double>();
  std::vector<Optimizer> all;
  all.push_back(std::move(optimizer));
  {
    const AveragedWeights averaged(all);
    EXPECT_NEAR(p[0].item<double>(), average, 1e-5);
    EXPECT_GT(std::abs(average - trained), 0.1);
  }
  EXPECT_EQ(p[0].item<double>(), trained);
}

TEST(Players, MistakesAreExplained) {
  testing::PairModel model;
  const auto trainer = [&](const nlohmann::json& players) {
    return [&, players] {
      TrainObserver nobody;
      Trainer(model, std::make_shared<Noise>(), options({{"players", players}}), 1, nobody);
    };
  };
  expect_error(trainer({{"discriminater", {{"lr", 1}}}}), {"discriminater", "did you mean 'discriminator'"});
  expect_error(trainer({{"discriminator", {{"lrr", 1}}}}), {"train.players.discriminator", "lrr", "lr"});
  expect_error(trainer({{"discriminator", {{"start", 1}}}, {"generator", {{"start", 2}}}}), {"no player learns"});
  expect_error(trainer({{"discriminator", {{"start", 6}}}}), {"start", "6"});
  at::Tensor p = at::ones({1});
  expect_error(
      [&] {
        check_players(options(), {{"a", {{"x", p}}}, {"b", {{"y", p}}}});
      },
      {"'y'", "two players", "a", "b"});
  Noise data;
  EXPECT_NE(model.obstacle_to_chunks(), "");
  expect_error([&] { plan_step(options({{"chunk_frames", 1}}), model, data, 0); }, {"chunk_frames", "whole clips"});
}

}  // namespace
}  // namespace convssm::train
