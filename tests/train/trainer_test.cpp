// What is saved, trusted and said when a training goes wrong: a checkpoint is always the state after a whole good step, and
// the error that is told is the first one.
#include "convssm/train/trainer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <torch/torch.h>

#include <functional>
#include <new>
#include <set>
#include <stdexcept>

#include "convssm/base/error.h"
#include "tests/base/scratch_folder.h"
#include "tests/models/toy_data.h"
#include "tests/models/toys.h"
#include "tests/support.h"

namespace convssm::train {
namespace {

using nlohmann::json;
using testing::expect_error;

// Something happens in the middle of a step: after the loss, which has moved a buffer, before its gradients.
struct ScriptedModel : testing::PairModel {
  std::function<void(const models::LossContext&)> script;
  models::LossOutput loss(const models::Clips& clips, const models::LossContext& context,
                          const models::State& start = {}) override {
    models::LossOutput out = PairModel::loss(clips, context, start);
    if (script) script(context);
    return out;
  }
};

struct ScriptedClips : testing::NoiseClips {
  bool broken = false;
  data::Clips clip(data::Split split, uint64_t index, int64_t frames) const override {
    if (broken) fail(ErrorKind::data, "a clip cannot be read");
    return NoiseClips::clip(split, index, frames);
  }
};

struct Witness : TrainObserver {
  explicit Witness(const ScratchFolder& folder) : scratch(folder) {}

  bool save(const Snapshot& snapshot) override {
    saved.push_back(snapshot.step);
    extras = snapshot.extras;
    io::stream_safetensors(scratch.path("newest"), snapshot.arrays);
    return true;
  }
  void line(int64_t step, const json&, const json&) override {
    if (step == fails_at) throw std::runtime_error("the line");
  }
  void distrust_after(int64_t step) override { distrusted.push_back(step); }
  void status(const std::string& state, int64_t, double, const std::string& note) override {
    last_state = state, last_note = note;
  }

  const ScratchFolder& scratch;
  int64_t fails_at = -1;
  std::vector<int64_t> saved, distrusted;
  json extras;
  std::string last_state, last_note;
};

struct Fixture {
  explicit Fixture(const json& more = json::object()) : Fixture(more, witness) {}
  Fixture(const json& more, TrainObserver& observer) {
    json options = {{"steps", 20},       {"batch", 2},         {"frames", 3},          {"warmup", 0},
                    {"log_interval", 1}, {"save_interval", 2}, {"sample_interval", 0}, {"workers", 0}};
    options.update(more);
    trainer.emplace(model, clips, TrainOptions::from_json(options), 1, observer);
    trainer->prepare();  // the estimate runs the losses too, before anything is scripted
  }

  // Bad numbers in the steps that have an index from `first` on.
  void spoil(const std::string& player, int64_t first) {
    model.script = [=](const models::LossContext& context) {
      if (context.player == player && context.step >= first) fail(ErrorKind::numeric, "scripted");
    };
  }
  Outcome run() {
    const StopRequest stop;
    return trainer->run(stop);
  }

  const ScratchFolder scratch;
  Witness witness{scratch};
  ScriptedModel model;
  std::shared_ptr<ScriptedClips> clips = std::make_shared<ScriptedClips>();
  std::optional<Trainer> trainer;
};

using Steps = std::vector<int64_t>;

TEST(Trainer, AStepThatIsHalfDoneIsNotSaved) {
  for (const char* player : {"generator", "discriminator"}) {
    Fixture f;
    f.model.script = [&](const models::LossContext& context) {
      if (context.step == 3 && context.player == player) throw std::runtime_error("in the middle");
    };
    EXPECT_THROW(f.run(), std::runtime_error);
    EXPECT_EQ(f.witness.saved, Steps{2}) << player;
    EXPECT_EQ(f.witness.last_state, "failed");
  }
}

TEST(Trainer, WholeStepsBeforeAFailureAreSaved) {
  Fixture f;
  f.witness.fails_at = 3;
  EXPECT_THROW(f.run(), std::runtime_error);
  EXPECT_EQ(f.witness.saved, (Steps{2, 3}));
}

// Without buffers a loss changes nothing, so the state before the step is still there.
TEST(Trainer, AFailureThatChangedNothingLosesNothing) {
  struct Failing : testing::DrawingModel {
    bool ready = false;
    models::LossOutput loss(const models::Clips& clips, const models::LossContext& context,
                            const models::State& start = {}) override {
      if (ready && context.step == 3) throw std::bad_alloc();
      return DrawingModel::loss(clips, context, start);
    }
  } model;
  const ScratchFolder scratch;
  Witness witness(scratch);
  const json options = {{"steps", 9},  {"batch", 2},         {"frames", 3},
                        {"warmup", 0}, {"save_interval", 2}, {"sample_interval", 0}};
  Trainer trainer(model, std::make_shared<testing::NoiseClips>(), TrainOptions::from_json(options), 1, witness);
  trainer.prepare();
  model.ready = true;
  const StopRequest stop;
  EXPECT_THROW(trainer.run(stop), std::bad_alloc);
  EXPECT_EQ(witness.saved, (Steps{2, 3}));
}

TEST(Trainer, AFailureBeforeTheFirstStepIsDoneSavesNothing) {
  Fixture f;
  f.clips->broken = true;
  expect_error([&] { f.run(); }, {"cannot be read"});
  EXPECT_TRUE(f.witness.saved.empty()) << "a run that was corrected could not begin in its folder";
  EXPECT_EQ(f.witness.last_state, "failed");
}

TEST(Trainer, ACheckpointIsProvedByAStepOfAllPlayers) {
  Fixture second(json{{"save_interval", 1}});
  second.spoil("discriminator", 3);
  ::testing::internal::CaptureStderr();
  expect_error([&] { second.run(); }, {"5 steps in a row", "the last good checkpoint is that of step 2"});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("no update of discriminator (1 of 5"), std::string::npos) << said;
  EXPECT_EQ(second.witness.saved, (Steps{1, 2, 3}));
  EXPECT_EQ(second.witness.distrusted, Steps{2});

  Fixture first(json{{"save_interval", 1}});
  first.spoil("generator", 3);
  ::testing::internal::CaptureStderr();
  expect_error([&] { first.run(); }, {"5 steps in a row"});
  const std::string both = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(both.find("no update of generator, discriminator (1 of 5"), std::string::npos) << both;
  EXPECT_EQ(first.witness.distrusted, Steps{2});

  Fixture late(json{{"save_interval", 1}, {"players", {{"generator", {{"start", 10}}}}}});
  late.spoil("discriminator", 3);
  expect_error([&] { late.run(); }, {"5 steps in a row"});
  EXPECT_EQ(late.witness.distrusted, Steps{2}) << "the first player does not learn yet";
}

TEST(Trainer, ACheckpointIsNotTrustedBecauseARunGoesOnFromIt) {
  Fixture before(json{{"steps", 4}});
  EXPECT_EQ(before.run(), Outcome::finished);
  ASSERT_EQ(before.witness.saved, (Steps{2, 4}));
  const io::SafetensorsFile file(before.scratch.path("newest"));
  json extras = before.witness.extras;
  for (const int64_t trusted : {2, 4}) {
    Fixture f;
    f.trainer->restore(file, 4, extras);
    f.spoil("generator", 4);
    expect_error([&] { f.run(); }, {"5 steps in a row"});
    EXPECT_EQ(f.witness.distrusted, Steps{trusted});
    extras.erase("good_step");  // as older checkpoints are
  }
}

TEST(Trainer, BadStepsAtTheEndAreAnErrorAndNotSaved) {
  Fixture f(json{{"steps", 8}, {"save_interval", 3}});
  f.spoil("discriminator", 6);
  try {
    f.run();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    const std::string text = error.what();
    for (const char* part : {"2 in a row", "scripted", "that of step 6", "train.steps=6"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " not in " << text;
    }
  }
  EXPECT_EQ(f.witness.saved, (Steps{3, 6}));
  EXPECT_TRUE(f.witness.distrusted.empty());
  EXPECT_EQ(f.witness.last_state, "failed");
}

TEST(Trainer, AStopAmongBadStepsKeepsTheCheckpointBefore) {
  Fixture f;
  f.model.script = [](const models::LossContext& context) {
    if (context.step == 3) raise(SIGINT);
    if (context.step == 3) fail(ErrorKind::numeric, "scripted");
  };
  EXPECT_EQ(f.run(), Outcome::stopped);
  EXPECT_EQ(f.witness.saved, Steps{2});
  EXPECT_EQ(f.trainer->saved_step(), 2);
  EXPECT_EQ(f.witness.last_state, "stopped");
}

// The observer fails as well while it hears of a failure.
TEST(Trainer, TheFirstErrorIsTheOneThatIsTold) {
  const ScratchFolder scratch;
  struct Helpless : Witness {
    using Witness::Witness;
    bool save(const Snapshot&) override { throw std::bad_alloc(); }
    void status(const std::string& state, int64_t, double, const std::string&) override {
      if (state == "failed") throw std::logic_error("the status");
    }
  } helpless(scratch);
  helpless.fails_at = 3;
  Fixture f(json{{"save_interval", 0}}, helpless);
  ::testing::internal::CaptureStderr();
  try {
    f.run();
    FAIL() << "no error";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "the line");
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  for (const char* part : {"bad_alloc", "the status"}) EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(Trainer, WritesNoLogIfItIsNotAskedTo) {
  Fixture f(json{{"steps", 3}, {"log_interval", 0}});
  f.witness.fails_at = 3;
  EXPECT_EQ(f.run(), Outcome::finished);
}

TEST(Trainer, TrainsModelsOfSingleFrames) {
  testing::CountingModel model;
  TrainObserver nobody;
  const TrainOptions o = TrainOptions::from_json(
      {{"steps", 3}, {"batch", 4}, {"frames", 1}, {"warmup", 0}, {"lr", 0.1}, {"sample_interval", 0}});
  const double before = model.parameters()[0].item<double>();
  Trainer trainer(model, std::make_shared<testing::NoiseClips>(), o, 1, nobody);
  const StopRequest stop;
  EXPECT_EQ(trainer.run(stop), Outcome::finished);
  EXPECT_EQ(model.count().item<double>(), 3);
  EXPECT_NE(model.parameters()[0].item<double>(), before);
}

}  // namespace
}  // namespace convssm::train
