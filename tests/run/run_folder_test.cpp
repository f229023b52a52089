// The folder of a run: what killed processes left goes, a folder that goes while training is noticed, odd files do not hang.
#include "convssm/run/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "convssm/run/training_run.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::run {
namespace {

nlohmann::json short_training() {
  const nlohmann::json coder = {{"depths", {4, 8}}}, core = {{"name", "convs5"}, {"features", 8}, {"state_size", 8}};
  return {{"model", {{"encoder", coder}, {"decoder", coder}, {"core", core}}},
          {"data", {{"name", "moving-mnist"}, {"digits", 1}, {"image_size", 12}, {"digit_size", 8}, {"clips", 20}}},
          {"train", {{"steps", 4}, {"batch", 2}, {"frames", 4}, {"warmup", 1}, {"save_interval", 2}, {"workers", 0}}}};
}

TEST(RunFolder, IsCleanedWhenItIsOpened) {
  const ScratchFolder scratch;
  for (const char* name :
       {"config.yaml.convssm-tmp-abc123", "log.jsonl.convssm-tmp-abc123", "status.json.convssm-tmp-abc123",
        "report.html.convssm-tmp-abc123", "samples/step-000006.gif.convssm-tmp-abc123",
        "checkpoints/step-000004.json.convssm-tmp-abc123", "checkpoints/step-000004.safetensors"}) {
    scratch.write(std::string("run/") + name, "half");
  }
  for (const char* name : {"log.jsonl", "notes.tmp-backup", "samples/a.gif", "mine/x.convssm-tmp-abc123"})
    scratch.write(std::string("run/") + name, "whole");
  const RunFolder folder(scratch.path("run"));
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path("run"))) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 5u);  // and run.lock
}

TEST(RunFolder, TrainingEndsWhenItIsDeletedOrReplaced) {
  for (const bool replaced : {false, true}) {
    const ScratchFolder scratch;
    const std::string run = scratch.path("run");
    RunFolder folder(run);
    TrainingRun training(Config::from_json(short_training()), folder, false, [&] {
      std::filesystem::remove_all(run);
      if (replaced) scratch.write("run/run.lock", "process 1\n");
    });
    const StopRequest stop;
    ::testing::internal::CaptureStderr();
    testing::expect_error([&] { training.run(stop); }, {run, "deleted, moved or replaced", "training ends"});
    ::testing::internal::GetCapturedStderr();
    EXPECT_FALSE(std::filesystem::exists(run + "/checkpoints"));
    EXPECT_FALSE(std::filesystem::exists(run + "/status.json"));
    EXPECT_EQ(std::filesystem::exists(run), replaced);
  }
}

TEST(RunFolder, ALogThatIsNoFileIsRefused) {
  const ScratchFolder scratch;
  RunFolder folder(scratch.path("run"));
  ASSERT_EQ(symlink("/dev/zero", folder.path("log.jsonl").c_str()), 0);
  testing::expect_error([&] { folder.forget_log_after(3); }, {"log.jsonl", "not a regular file"});
  std::filesystem::remove(folder.path("log.jsonl"));
  ASSERT_EQ(mkfifo(folder.path("log.jsonl").c_str(), 0600), 0);
  testing::expect_error([&] { folder.forget_log_after(3); }, {"log.jsonl", "not a regular file"});
}

TEST(RunFolder, KeepsTheLinesUpToAStep) {
  const ScratchFolder scratch;
  RunFolder folder(scratch.path("run"));
  scratch.write("run/log.jsonl",
                "{\"step\":1}\n{\"step\":2}\n[1]\n{\"step\":\"x\"}\n{\"note\":1}\n{\"step\":3}\n{\"st");
  folder.forget_log_after(2);
  EXPECT_EQ(read_text(folder.path("log.jsonl")), "{\"step\":1}\n{\"step\":2}\n{\"note\":1}\n");
}

}  // namespace
}  // namespace convssm::run
