// Training that carries its states along recordings: the losses of windows are those of the recording as a whole, for every core,
// with parts of a batch, chunks and self-feeding; and it ends with the same bits however often it is stopped.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <numeric>

#include "convssm/data/walk.h"
#include "convssm/io/tensor.h"
#include "convssm/models/registry.h"
#include "convssm/train/self_feed.h"
#include "convssm/train/trainer.h"
#include "tests/base/scratch_folder.h"
#include "tests/models/recordings.h"
#include "tests/models/toys.h"

namespace convssm::train {
namespace {

using testing::distance;
using testing::expect_error;
using testing::NoiseRecordings;

std::vector<nlohmann::json> carrying_cores() {
  nlohmann::json convs5{{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}}, learned = convs5,
                                                                                                gated = convs5;
  learned["learned_state"] = true, gated["dynamics"] = "gated";
  return {
      convs5,
      learned,
      gated,
      {{"name", "hybrid"}, {"features", 8}, {"state_size", 8}, {"heads", 1}, {"window", 6}, {"patch", 2}, {"mlp", 8}},
      {{"name", "convrnn"}, {"features", 8}},
      {{"name", "convlstm"}, {"features", 8}},
      {{"name", "convgru"}, {"features", 8}, {"layers", 2}},
      {{"name", "s5"}, {"features", 8}, {"state_size", 8}, {"out_features", 8}},
      {{"name", "performer"}, {"features", 8}, {"heads", 2}, {"out_features", 8}},
      {{"name", "transformer"}, {"features", 8}, {"heads", 2}, {"out_features", 8}, {"window", 6}}};
}

std::shared_ptr<models::Model> carrying_model(const nlohmann::json& core = carrying_cores()[0]) {
  const nlohmann::json coder = {{"depths", {4, 8}}};
  auto model = models::make_model({{"encoder", coder}, {"decoder", coder}, {"core", core}, {"actions", 3}}, {1, 8, 8});
  for (auto& item : model->named_parameters()) {
    torch::NoGradGuard no_grad;
    if (item.key().ends_with(".x0")) item.value().add_(1);  // what a recording begins with is to be seen
  }
  return model;
}

struct Losses : TrainObserver {
  void line(int64_t, const nlohmann::json& scores, const nlohmann::json&) override { all.push_back(scores.at("loss")); }
  bool save(const Snapshot& snapshot) override {
    extras = snapshot.extras;
    if (scratch) io::stream_safetensors(scratch->path("newest"), snapshot.arrays);
    return true;
  }
  std::vector<double> all;
  nlohmann::json extras;
  const ScratchFolder* scratch = nullptr;
};

// As good as no learning, so that all steps are of one model.
nlohmann::json still(int64_t steps, int64_t batch, const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json options = {{"steps", steps},       {"batch", batch}, {"frames", 4},         {"lr", 1e-30},
                            {"weight_decay", 0},    {"warmup", 0},    {"log_interval", 1},   {"save_interval", 0},
                            {"sample_interval", 0}, {"workers", 0},   {"carry_state", true}, {"schedule", "constant"}};
  options.update(more);
  return options;
}

std::vector<double> train(models::Model& model, std::shared_ptr<const data::Dataset> data,
                          const nlohmann::json& options) {
  Losses losses;
  Trainer trainer(model, std::move(data), TrainOptions::from_json(options), 3, losses);
  const StopRequest stop;
  EXPECT_EQ(trainer.run(stop), Outcome::finished);
  return losses.all;
}

double loss_of_whole(models::Model& model, const NoiseRecordings& data, uint64_t clip) {
  torch::NoGradGuard no_grad;
  return model.loss(data.whole(clip), {}).loss.item<double>();
}

// Two recordings of 5 windows of 3 predicted frames.
TEST(CarriedState, LossesOfWindowsAreThatOfTheRecordings) {
  const auto data = std::make_shared<NoiseRecordings>(std::vector<int64_t>{16, 16});
  for (const nlohmann::json& core : carrying_cores()) {
    const auto model = carrying_model(core);
    const double expected = 0.5 * (loss_of_whole(*model, *data, 0) + loss_of_whole(*model, *data, 1));
    const auto mean = [&](int64_t steps, int64_t batch, const nlohmann::json& more) {
      const auto losses = train(*model, data, still(steps, batch, more));
      return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
    };
    EXPECT_NEAR(mean(5, 2, nlohmann::json::object()), expected, 1e-5 * expected) << core;
    EXPECT_NEAR(mean(10, 1, {{"chunk_frames", 2}}), expected, 1e-5 * expected) << core;
    EXPECT_NEAR(mean(10, 2, {{"accumulate", 2}, {"recompute", true}}), expected, 1e-5 * expected) << core;
    EXPECT_GT(std::abs(mean(5, 2, {{"carry_state", false}}) - expected), 1e-4 * expected) << core << ": states matter";
  }
}

// Rows that begin at different times: three recordings of 5, 3 and 2 windows for two rows of 5.
TEST(CarriedState, RowsBeginAtDifferentTimes) {
  const auto data = std::make_shared<NoiseRecordings>(std::vector<int64_t>{16, 10, 7});
  const data::Walk walk(*data, data::Split::train, 3, 2, 4);
  for (const nlohmann::json& core : carrying_cores()) {
    const auto model = carrying_model(core);
    const auto losses = train(*model, data, still(15, 2));
    std::vector<models::State> states(2);
    torch::NoGradGuard no_grad;
    int apart = 0;
    for (uint64_t step = 0; step < 15; ++step) {
      double expected = 0;
      for (int64_t row = 0; row < 2; ++row) {
        const auto at = walk.place(step, row);
        models::State& state = states[static_cast<size_t>(row)];
        if (at.begins) state = {};
        auto out = model->loss(data->part(data::Split::train, at.clip, at.first, 4), {}, state);
        state = out.state;
        expected += 0.5 * out.loss.item<double>();
      }
      apart += walk.place(step, 0).begins != walk.place(step, 1).begins;
      EXPECT_NEAR(losses[step], expected, 1e-5 * expected) << core << " " << step;
    }
    EXPECT_GT(apart, 2);
  }
}

// Irregular times go through loader, chunks and windows.
TEST(CarriedState, KnowsWhenFramesWereTaken) {
  struct Timed : NoiseRecordings {
    using NoiseRecordings::NoiseRecordings;
    data::Clips timed() const {
      data::Clips clips = whole(0);
      clips.timing.dt = testing::randn({1, clips.frames()}, 5).exp().to(at::kFloat);
      return clips;
    }
    data::Clips clip(data::Split, uint64_t, int64_t frames) const override {
      return data::frames_of(timed(), 0, frames);
    }
    data::Clips part(data::Split, uint64_t, int64_t first, int64_t frames) const override {
      return data::frames_of(timed(), first, first + frames);
    }
  };
  const auto data = std::make_shared<Timed>(std::vector<int64_t>{16});
  const auto model = carrying_model();
  double expected = 0;
  {
    torch::NoGradGuard no_grad;
    expected = model->loss(data->timed(), {}).loss.item<double>();
  }
  EXPECT_GT(std::abs(expected - loss_of_whole(*model, *data, 0)), 1e-4);
  const auto losses = train(*model, data, still(5, 1, {{"chunk_frames", 2}, {"workers", 2}}));
  EXPECT_NEAR(std::accumulate(losses.begin(), losses.end(), 0.0) / 5, expected, 1e-5 * expected);
  expect_error([&] { train(*carrying_model(carrying_cores()[5]), data, still(5, 1)); }, {"dt"});
}

TEST(CarriedState, MoreRowsThanRecordings) {
  const auto data = std::make_shared<NoiseRecordings>(std::vector<int64_t>{25});  // 8 windows
  const auto model = carrying_model();
  EXPECT_EQ(train(*model, data, still(4, 4)).size(), 4u);
  ::testing::internal::CaptureStderr();
  train(*model, data, still(2, 16));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("nothing is carried"), std::string::npos) << said;
}

// Own frames go in as a model makes them that has seen all before.
TEST(CarriedState, SelfFeedingGoesOnFromIt) {
  const auto model = carrying_model();
  model->to(at::kDouble);
  models::Forecaster& forecaster = *model->as_forecaster();
  data::Clips clips = NoiseRecordings({12}).whole(0);
  clips.video = clips.video.to(at::kDouble);
  torch::NoGradGuard no_grad;
  const data::Clips before = data::frames_of(clips, 0, 7), window = data::frames_of(clips, 6, 12);
  const models::State state = model->loss(before, {}).state;
  const at::Tensor found = forecaster.forecasts(window, window.actions, state);
  const at::Tensor coming = at::cat({clips.actions.slice(1, 1, 7), window.actions}, 1);
  const at::Tensor all = forecaster.forecasts({clips.video}, coming);
  EXPECT_LT(distance(found, all.slice(1, 6)), 1e-10);
  EXPECT_GT(distance(found, forecaster.forecasts(window, window.actions)), 1e-6);
  const data::Clips fed = self_fed(forecaster, window, 1, 5, Stream(1), state);
  models::State now = forecaster.start(data::frames_of(clips, 0, 7), {});
  for (int64_t t = 1; t < 6; ++t) {
    models::Forecast out = forecaster.next(now, window.actions.select(1, t));
    EXPECT_LT(distance(fed.inputs.select(1, t), out.frame), 1e-9) << t;
    now = out.state;
  }
}

TEST(CarriedState, TrainsWithSelfFeeding) {
  const auto data = std::make_shared<NoiseRecordings>(std::vector<int64_t>{16, 10, 7});
  const auto losses = train(*carrying_model(), data, still(15, 2, {{"self_feed", 0.5}}));
  for (const double loss : losses) EXPECT_TRUE(std::isfinite(loss));
}

TEST(CarriedState, StoppedAnywhereItEndsWithTheSameBits) {
  const auto data = std::make_shared<NoiseRecordings>(std::vector<int64_t>{25, 10, 17});
  const StopRequest stop;
  for (const size_t core : {0, 3, 8}) {
    const nlohmann::json options = still(11, 2, {{"lr", 0.01}, {"self_feed", 0.5}});
    const auto parameters_after = [&](int64_t stopped) {
      const ScratchFolder scratch;
      const auto model = carrying_model(carrying_cores()[core]);
      Losses losses;
      losses.scratch = &scratch;
      if (stopped > 0) {
        nlohmann::json first = options;
        first["save_interval"] = stopped;
        struct Stopper : Losses {
          void progress(int64_t step, const std::string&) override {
            if (step == last) throw std::runtime_error("stopped");
          }
          int64_t last = 0;
        } stopper;
        stopper.scratch = &scratch, stopper.last = stopped;
        Trainer trainer(*model, data, TrainOptions::from_json(first), 3, stopper);
        EXPECT_THROW(trainer.run(stop), std::runtime_error);  // saves the steps that are done
        losses.extras = stopper.extras;
      }
      Trainer rest(*model, data, TrainOptions::from_json(options), 3, losses);
      if (stopped > 0) rest.restore(io::SafetensorsFile(scratch.path("newest")), stopped, losses.extras);
      EXPECT_EQ(rest.run(stop), Outcome::finished);
      return torch::nn::utils::parameters_to_vector(model->parameters()).detach();
    };
    const at::Tensor whole = parameters_after(0);
    for (const int64_t stopped : {1, 4, 7, 10}) EXPECT_TRUE(parameters_after(stopped).equal(whole)) << core << stopped;
  }
}

// A recording more, and the rows are elsewhere.
TEST(CarriedState, BelongsToTheRecordingsItCameFrom) {
  const ScratchFolder scratch;
  const auto model = carrying_model(carrying_cores()[0]);
  const StopRequest stop;
  const auto options = TrainOptions::from_json(still(3, 2));
  Losses losses;
  losses.scratch = &scratch;
  const auto trainer = [&](const std::vector<int64_t>& lengths) {
    return Trainer(*model, std::make_shared<NoiseRecordings>(lengths), options, 3, losses);
  };
  EXPECT_EQ(trainer({25, 10, 17}).run(stop), Outcome::finished);
  const auto said = [&](const std::vector<int64_t>& lengths) {
    Trainer later = trainer(lengths);
    ::testing::internal::CaptureStderr();
    later.restore(io::SafetensorsFile(scratch.path("newest")), 3, losses.extras);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said({25, 10, 17}).find("begin anew"), std::string::npos);
  EXPECT_NE(said({25, 10, 17, 30}).find("begin anew"), std::string::npos);
}

// What carried NaN would carry it on.
TEST(CarriedState, IsForgottenAfterAStepThatCouldNotBeUsed) {
  CarriedStates carried(2);
  models::State state;
  state.set("x", at::arange(6).view({2, 3}));
  state.set("position", at::scalar_tensor(4, at::kLong));
  carried.keep({0, 1}, state);
  EXPECT_TRUE(carried.groups(0, 2, {false, false})[0].start.empty()) << "the step is not done";
  carried.commit();
  auto groups = carried.groups(0, 2, {false, false});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(groups[0].start.get("x").equal(state.get("x")));
  EXPECT_EQ(groups[0].start.get("position").item<int64_t>(), 4);
  groups = carried.groups(0, 2, {true, false});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_TRUE(groups[0].start.empty());
  EXPECT_TRUE(groups[1].start.get("x").equal(state.get("x").slice(0, 1, 2)));
  models::State later = state;
  later.set("position", at::scalar_tensor(5, at::kLong));
  carried.keep({1}, later);
  carried.commit();
  EXPECT_EQ(carried.groups(0, 2, {false, false}).size(), 2u) << "of other positions";
  carried.forget();
  EXPECT_TRUE(carried.groups(0, 2, {false, false})[0].start.empty());
}

TEST(CarriedState, OfAFileIsChecked) {
  const ScratchFolder scratch;
  const auto load = [&](const std::string& name, const at::Tensor& value) {
    const std::vector<io::LazyArray> arrays{io::lazy_array(name, value)};
    io::stream_safetensors(scratch.path("a"), arrays);
    CarriedStates(2).load(io::SafetensorsFile(scratch.path("a")), at::kCPU);
  };
  load("carried.1.core.x", at::ones({1, 2}));
  expect_error([&] { load("carried.2.core.x", at::ones({1, 2})); }, {"carried.2.core.x", "2 rows"});
  expect_error([&] { load("carried.1.core.x", at::ones({2, 2})); }, {"carried.1.core.x", "[2,2]"});
  expect_error([&] { load("carried.x", at::ones({1})); }, {"carried.x", "one of 2 rows"});
  expect_error([&] { load("carried.1", at::ones({1})); }, {"carried.1", "one of 2 rows"});
}

TEST(CarriedState, SaysWhichModelsCannot) {
  const auto data = std::make_shared<NoiseRecordings>(std::vector<int64_t>{16, 16});
  Losses losses;
  const auto make = [&](models::Model& model, const nlohmann::json& options) {
    Trainer trainer(model, data, TrainOptions::from_json(options), 3, losses);
  };
  const auto growing = carrying_model({{"name", "transformer"}, {"features", 8}, {"heads", 2}, {"out_features", 8}});
  expect_error([&] { make(*growing, still(5, 2)); }, {"carry_state", "grows with every frame", "with a window"});
  testing::PairModel pair;
  expect_error([&] { make(pair, still(5, 2)); }, {"carry_state", "whole clips"});
  nlohmann::json dropped = carrying_cores()[0];
  dropped["dropout"] = 0.1;
  const auto noisy = carrying_model(dropped);
  EXPECT_EQ(train(*noisy, data, still(5, 2)).size(), 5u) << "chunks are run twice, windows once";
  nlohmann::json codes = {{"name", "codes"},
                          {"codebook", {{"count", 6}, {"height", 4}, {"width", 4}, {"features", 3}}},
                          {"encoder", {{"depths", {4}}}},
                          {"decoder", {{"depths", {4}}}},
                          {"core", dropped}};
  const auto of_codes = models::make_model(codes, {1, 4, 4});
  EXPECT_EQ(of_codes->obstacle_to_carrying(), "");
  EXPECT_NE(of_codes->obstacle_to_chunks(), "");
  codes["drop_loss"] = 0.5;
  EXPECT_NE(models::make_model(codes, {1, 4, 4})->obstacle_to_carrying().find("drop_loss"), std::string::npos);
}

}  // namespace
}  // namespace convssm::train
