// Forecasts that depend on actions, as processes: a recording whose brightness is steered.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "../base/scratch_folder.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "program.h"
#include "tiny_run.h"

namespace convssm {
namespace {

constexpr int64_t kSize = 12, kFrames = 60;

io::Array steered_video(const std::vector<int64_t>& actions) {
  std::vector<uint8_t> pixels;
  for (const int64_t action : actions) {
    for (int64_t i = 0; i < kSize * kSize; ++i) pixels.push_back(static_cast<uint8_t>(60 * action + i % kSize));
  }
  return io::make_array({static_cast<int64_t>(actions.size()), kSize, kSize}, pixels);
}

io::Array action_array(const std::vector<int64_t>& actions) {
  return io::make_array({static_cast<int64_t>(actions.size())}, actions);
}

std::vector<int64_t> walk(int64_t frames) {
  std::vector<int64_t> actions;
  for (int64_t k = 0; k < frames; ++k) actions.push_back(k * k / 2 % 3);
  return actions;
}

std::string steered_config(const std::string& data) {
  return "model:\n"
         "  encoder: {depths: [4, 8]}\n"
         "  decoder: {depths: [4, 8]}\n"
         "  core: {name: convs5, features: 8, state_size: 8}\n"
         "  actions: 3\n"
         "data: {name: folder, path: " +
         data +
         ", actions_key: steering}\n"
         "train: {steps: 6, batch: 2, frames: 4, warmup: 2, log_interval: 3, save_interval: 6, sample_interval: 0}\n"
         "evaluate: {context: 2, horizons: [2], samples: 1}\n";
}

// A run that learned from actions.
class ActionsProcess : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new ScratchFolder();
    const auto actions = walk(kFrames);
    const std::vector<io::NamedArray> arrays{{"data", steered_video(actions)}, {"steering", action_array(actions)}};
    io::write_npz(path("seen.npz"), arrays, false);
    write_text(path("run.yaml"), steered_config(path("seen.npz")));
    const Outcome trained = run("train " + path("run.yaml") + " --run " + path("run"));
    ASSERT_EQ(trained.code, 0) << trained.err;
    expect_contains(trained.err + trained.out, "3 different actions, action k leads to frame k");
  }
  static void TearDownTestSuite() { delete scratch_; }
  static std::string path(const std::string& name) { return scratch_->path(name); }

  static Outcome generate(const std::string& arguments, const std::string& model = "run") {
    return run("generate " + path(model) + " " + arguments + " --force");
  }
  static void fails(const std::string& arguments, int code, const std::vector<std::string>& parts) {
    const Outcome outcome = generate(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    for (const auto& part : parts) expect_contains(outcome.err, part);
  }
  static std::vector<uint8_t> made(const std::string& arguments) {
    const Outcome outcome = generate(arguments + " --out " + path("made.npy"));
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
    if (outcome.code != 0) return {};
    const io::Array array = io::read_npy(path("made.npy"));
    return {array.values<uint8_t>().begin(), array.values<uint8_t>().end()};
  }

  static ScratchFolder* scratch_;
};
ScratchFolder* ActionsProcess::scratch_ = nullptr;

TEST_F(ActionsProcess, AreGivenInAFileOfTheirOwn) {
  const auto all = walk(kFrames);
  io::write_npy(path("rest.npy"), action_array({all.begin() + 8, all.begin() + 12}));
  io::write_npy(path("other.npy"), action_array({2, 2, 2, 2}));
  const std::string context = "--context " + path("seen.npz") + " --context-frames 8 ";
  const Outcome said = generate(context + "--actions " + path("rest.npy") + " --out " + path("a.npy"));
  ASSERT_EQ(said.code, 0) << said.err;
  expect_contains(said.err, "action k leads to generated frame k");
  expect_contains(said.err, "its action k leads to its frame k");
  const auto beside = made(context + "--frames 4"), apart = made(context + "--actions " + path("rest.npy"));
  EXPECT_EQ(apart.size(), 4u * kSize * kSize);  // as many frames as there are actions
  EXPECT_EQ(apart, beside);
  EXPECT_NE(made(context + "--actions " + path("other.npy")), apart);
}

TEST_F(ActionsProcess, WhatIsMissingIsSaid) {
  const std::string out = " --out " + path("x.npy");
  fails("--context " + path("seen.npz") + out, 3, {"after the context", "no actions", "action_dropout", "--actions"});
  io::write_npy(path("three.npy"), action_array({0, 1, 2}));
  fails("--context " + path("seen.npz") + " --actions " + path("three.npy") + " --frames 5" + out, 3,
        {"three.npy", "3 of 5 frames"});
  io::write_npy(path("video.npy"), steered_video(walk(4)));
  fails("--context " + path("video.npy") + " --actions " + path("three.npy") + out, 3,
        {"video.npy has no actions", "action_dropout", "array 'steering'"});
  io::write_npz(path("misnamed.npz"),
                std::vector<io::NamedArray>{{"data", steered_video(walk(4))}, {"action", action_array(walk(4))}},
                false);
  fails("--context " + path("misnamed.npz") + " --actions " + path("three.npy") + out, 3,
        {"misnamed.npz has no actions", "--actions-key action"});
  io::write_npy(path("seven.npy"), action_array({7}));
  fails("--context " + path("seen.npz") + " --actions " + path("seven.npy") + out, 2, {"7", "model.actions = 3"});
  io::write_npy(path("numbers.npy"), io::make_array({2, 2}, std::vector<float>(4, 0.f)));
  fails("--context " + path("seen.npz") + " --actions " + path("numbers.npy") + out, 3,
        {"numbers.npy", "2 numbers", "whole numbers 0 to 2"});
  EXPECT_FALSE(std::filesystem::exists(path("x.npy")));
  io::write_npy(path("unknown.npy"), action_array({0, -1}));
  const Outcome masked = generate("--context " + path("seen.npz") + " --actions " + path("unknown.npy") + out);
  EXPECT_EQ(masked.code, 0) << masked.err;
  expect_contains(masked.err, "unknown.npy has 1 masked action, and this model never learned without");
}

TEST_F(ActionsProcess, AreMaskedWhereTheModelLearnedIt) {
  const Outcome trained = run("train " + path("run.yaml") + " train.action_dropout=0.5 --run " + path("dropped"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome outcome = generate("--context " + path("seen.npz") + " --frames 3 --out " + path("m.npy"), "dropped");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.err, "are masked");
}

TEST_F(ActionsProcess, OfSeveralClipsAreThoseOfTheChosenOne) {
  const auto all = walk(kFrames);
  const io::Array video = steered_video(all);
  std::vector<uint8_t> two(video.values<uint8_t>().begin(), video.values<uint8_t>().end());
  two.insert(two.end(), video.values<uint8_t>().begin(), video.values<uint8_t>().end());
  std::vector<int64_t> shape = video.shape(), steering = all;
  shape.insert(shape.begin(), 2);
  steering.insert(steering.end(), all.begin(), all.end());
  io::write_npz(path("two.npz"),
                std::vector<io::NamedArray>{{"data", io::make_array(shape, two)},
                                            {"steering", io::make_array({2, kFrames}, steering)}},
                false);
  io::write_npy(path("plans.npy"), io::make_array({2, 3}, std::vector<int64_t>{0, 1, 0, 2, 2, 2}));
  io::write_npy(path("plan-0.npy"), action_array({0, 1, 0}));
  io::write_npy(path("plan-1.npy"), action_array({2, 2, 2}));
  const auto with = [&](const std::string& clip, const std::string& plan) {
    return made("--context " + path("two.npz") + " --context-frames 8 --clip " + clip + " --actions " + path(plan));
  };
  for (const std::string clip : {"0", "1"}) EXPECT_EQ(with(clip, "plans.npy"), with(clip, "plan-" + clip + ".npy"));
  EXPECT_NE(with("0", "plans.npy"), with("1", "plans.npy"));
}

TEST_F(ActionsProcess, AStateTakesInTrueFramesAndActions) {
  const auto all = walk(kFrames);
  const auto chunk = [&](const std::string& name, int64_t begin, int64_t end) {
    const std::vector<int64_t> actions(all.begin() + begin, all.begin() + end);
    io::write_npz(path(name),
                  std::vector<io::NamedArray>{{"data", steered_video(actions)}, {"steering", action_array(actions)}},
                  false);
  };
  chunk("first.npz", 0, 5), chunk("then.npz", 5, 8), chunk("both.npz", 0, 8);
  io::write_npy(path("plan.npy"), action_array({all.begin() + 8, all.begin() + 12}));
  const std::string plan = " --actions " + path("plan.npy"), state = path("s.safetensors");
  const auto expected = made("--context " + path("both.npz") + plan);
  const Outcome taken = generate("--context " + path("first.npz") + " --frames 0 --save-state " + state);
  ASSERT_EQ(taken.code, 0) << taken.err;
  EXPECT_EQ(made("--state " + state + " --observe " + path("then.npz") + plan), expected);
  ASSERT_EQ(generate("--state " + state + " --observe " + path("then.npz") + " --frames 0 --save-state " + state).code,
            0);
  EXPECT_EQ(made("--state " + state + plan), expected);
  fails("--state " + state + " --out " + path("x.npy"), 3, {"no actions", "--actions"});
  fails("--context " + path("both.npz") + " --observe " + path("then.npz") + plan + " --out " + path("x.npy"), 2,
        {"--observe"});
  fails("--context " + path("both.npz") + plan + " --frames 0 --out " + path("x.npy"), 2, {"--frames 0"});
}

TEST_F(ActionsProcess, AnExportRunsFromItsOwnFiles) {
  const Outcome exported = run("export " + path("run") + " --out " + path("small"));
  ASSERT_EQ(exported.code, 0) << exported.err;
  for (const char* name : {"context.npz", "actions.npy"}) expect_contains(exported.out, name);
  expect_contains(read_all(path("small/README.md")), "context.npz --actions small/actions.npy --out future.gif");
  const std::string from = "--context " + path("small/context.npz") + " --actions " + path("small/actions.npy");
  const Outcome outcome = generate(from + " --out " + path("e.npy"), "small");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(ActionsProcess, AModelOfActionsIsNotTrainedWithout) {
  const Outcome outcome =
      run("train " + path("run.yaml") + " 'data={name: folder, path: " + path("seen.npz") + "}' --run " + path("none"));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  expect_contains(outcome.err, "the data has none");
  expect_contains(outcome.err + outcome.out, "data.actions_key");
  expect_contains(run("data inspect " + path("seen.npz")).out, "if 'steering' holds them");
  const Outcome scored =
      run("evaluate " + path("run") + " 'data={name: folder, path: " + path("seen.npz") + "}' --out " + path("scores"));
  EXPECT_EQ(scored.code, 2) << scored.err;
  expect_contains(scored.err, "the data has none");
}

}  // namespace
}  // namespace convssm
