// Training as a process: interrupted, on a full disk, with a damaged checkpoint, with mistakes in the config.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "../base/scratch_folder.h"
#include "../run/log_scores.h"
#include "program.h"
#include "tiny_run.h"

namespace convssm {
namespace {

namespace fs = std::filesystem;

pid_t start_training(const std::vector<std::string>& words, const std::string& log) { return start(words, log, log); }

void sleep_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Waits until a file is there, at most a minute.
bool appears(const std::string& path) {
  for (int i = 0; i < 6000 && !fs::exists(path); ++i) sleep_seconds(0.01);
  return fs::exists(path);
}

TEST(TrainProcess, AnInterruptFinishesTheStepAndSaves) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const ScratchFolder scratch;
    const std::string run_folder = scratch.path("run");
    write_text(scratch.path("tiny.yaml"), tiny_config());
    const pid_t child = start_training({"train", scratch.path("tiny.yaml"), "train.steps=1000000", "--run", run_folder},
                                       scratch.path("log"));
    ASSERT_TRUE(appears(run_folder + "/checkpoints/step-000004.json")) << read_all(scratch.path("log"));
    kill(child, signal);
    EXPECT_EQ(wait_for(child), 128 + signal);
    const std::string log = read_all(scratch.path("log"));
    expect_contains(log, "finishing what is under way, then stopping");
    expect_contains(log, "and saved; go on with: convssm train --run");
    EXPECT_EQ(nlohmann::json::parse(read_all(run_folder + "/status.json"))["state"], "stopped");
    const Outcome rest = run("train --run " + run_folder + " --resume train.steps=8 train.warmup=2");
    EXPECT_EQ(rest.code, 0) << rest.err;
    expect_contains(rest.err, "changed: train.steps: 1000000 -> 8");
  }
}

TEST(TrainProcess, OneWriterAtATime) {
  const ScratchFolder scratch;
  const std::string run_folder = scratch.path("run");
  write_text(scratch.path("tiny.yaml"), tiny_config());
  const pid_t child = start_training({"train", scratch.path("tiny.yaml"), "train.steps=1000000", "--run", run_folder},
                                     scratch.path("log"));
  ASSERT_TRUE(appears(run_folder + "/status.json")) << read_all(scratch.path("log"));
  const Outcome second = run("train " + scratch.path("tiny.yaml") + " --run " + run_folder + " --resume");
  EXPECT_EQ(second.code, 2);
  expect_contains(second.err, "another process (process " + std::to_string(child) + ")");
  kill(child, SIGKILL);
  wait_for(child);
}

// A limit on the size of files stands for a full disk: writing fails in the middle of a file.
TEST(TrainProcess, AFullDiskLeavesTheCheckpointBefore) {
  const ScratchFolder scratch;
  const std::string run_folder = scratch.path("run");
  write_text(scratch.path("tiny.yaml"), tiny_config());
  ASSERT_EQ(run("train " + scratch.path("tiny.yaml") + " --run " + run_folder).code, 0);
  const std::string before = read_all(run_folder + "/checkpoints/step-000012.safetensors");
  const Outcome full = run("train --run " + run_folder + " --resume train.steps=20", "trap '' XFSZ; ulimit -f 16;");
  EXPECT_EQ(full.code, 4) << full.err;
  expect_contains(full.err, "checkpoint of step 16 could not be saved");
  expect_contains(full.err, "that of step 12 stays");
  EXPECT_EQ(read_all(run_folder + "/checkpoints/step-000012.safetensors"), before);
  const Outcome freed = run("train --run " + run_folder + " --resume train.steps=20");
  EXPECT_EQ(freed.code, 0) << freed.err;
  expect_contains(freed.err, "going on from step 12");
}

TEST(TrainProcess, ADamagedCheckpointIsPassedOver) {
  const ScratchFolder scratch;
  const std::string run_folder = scratch.path("run");
  write_text(scratch.path("tiny.yaml"), tiny_config());
  ASSERT_EQ(run("train " + scratch.path("tiny.yaml") + " --run " + run_folder).code, 0);
  const auto lines = testing::log_scores(run_folder);
  fs::resize_file(run_folder + "/checkpoints/step-000012.safetensors", 1000);
  const Outcome again = run("train --run " + run_folder + " --resume");
  EXPECT_EQ(again.code, 0) << again.err;
  expect_contains(again.err, "warning: the checkpoint " + run_folder + "/checkpoints/step-000012.safetensors");
  expect_contains(again.err, "going on from step 8");
  EXPECT_EQ(testing::log_scores(run_folder), lines);
}

TEST(TrainProcess, MistakesAreExplained) {
  const ScratchFolder scratch;
  const std::string config = scratch.path("tiny.yaml"), to = " --run " + scratch.path("run");
  write_text(config, tiny_config());
  const auto fails = [&](const std::string& arguments, int code, const std::vector<std::string>& parts) {
    const Outcome outcome = run("train " + arguments + to);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    for (const auto& part : parts) expect_contains(outcome.err, part);
  };
  fails(scratch.path("none.yaml"), 4, {"none.yaml", "No such file"});
  fails(config + " train.lrr=1", 2, {"unknown option 'lrr'", "did you mean 'lr'"});
  fails(config + " train.lr=fast", 2, {"'lr' must be a number", "fast"});
  fails(config + " model.core.name=convs55", 2, {"convs55", "did you mean 'convs5'"});
  fails(config + " model.core.featurs=4", 2, {"featurs", "features"});
  fails(config + " data.name=moving-mnits", 2, {"moving-mnits", "moving-mnist"});
  fails(config + " data.images=/nowhere", 4, {"/nowhere"});
  fails(config + " evaluate.horizon=3", 2, {"horizon", "horizons"});
  fails(config + " nonsense", 2, {"nonsense", "="});
  fails(config + " train.frames=0", 2, {"frames must be positive"});
  fails(config + " train.frames=1", 2, {"train.frames", "at least 2 frames"});
  fails("", 2, {"give a config"});
  fails("--resume", 2, {"no run to go on with"});
  write_text(scratch.path("bad.yaml"), "model: {a: 1\n");
  fails(scratch.path("bad.yaml"), 3, {"bad.yaml", "line"});
  EXPECT_EQ(run("train " + config + to).code, 0);
  fails(config, 2, {"holds a run already", "--resume"});
  fails(config + " --resume model.core.features=12", 2, {"another model", "model.core.features: 8 -> 12"});
  fails(config + " --resume data.digits=2", 2, {"data.digits: 1 -> 2"});
  const Outcome unwritable = run("train " + config + " --run /proc/run");
  EXPECT_EQ(unwritable.code, 4);
  expect_contains(unwritable.err, "/proc/run");
}

}  // namespace
}  // namespace convssm
