// Two players in a run folder: killed at random moments and resumed, the run ends with the bytes of one that was not; the
// averaged weights are what a loaded model has.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "convssm/io/safetensors.h"
#include "convssm/io/tensor.h"
#include "convssm/models/registry.h"
#include "convssm/run/checkpoint.h"
#include "convssm/run/model_file.h"
#include "tests/base/scratch_folder.h"
#include "tests/models/toys.h"
#include "tests/run/log_scores.h"

namespace convssm::run {
namespace {

constexpr const char* kSteps = "400";

// Its messages are added to `log`.
pid_t start(const std::string& folder, const std::string& log = "/dev/null") {
  const pid_t child = fork();
  if (child != 0) return child;
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(out, STDERR_FILENO);
  execl(CONVSSM_PAIR_RUN, CONVSSM_PAIR_RUN, folder.c_str(), kSteps, nullptr);
  _exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::string kLast = "/checkpoints/step-000400.safetensors";

int64_t newest(const std::string& folder) {
  const auto steps = checkpoint_steps(folder + "/checkpoints");
  return steps.empty() ? 0 : steps.back();
}

// Every process is killed some moments after it has saved a checkpoint of its own, so that each goes on from the one before.
TEST(PairRun, KilledAtRandomMomentsEndsWithTheSameBytes) {
  constexpr int kKills = 6;
  const ScratchFolder scratch;
  const std::string whole = scratch.path("whole"), killed = scratch.path("killed"), log = scratch.path("log");
  ASSERT_EQ(wait_for(start(whole)), 0);
  std::mt19937 random(std::random_device{}());
  std::uniform_int_distribution<int> moment(0, 3000);
  for (int i = 0; i < kKills; ++i) {
    const int64_t before = newest(killed);
    const pid_t child = start(killed, log);
    for (int wait = 0; wait < 60000 && newest(killed) <= before; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(moment(random)));
    kill(child, SIGKILL);
    wait_for(child);
  }
  ASSERT_EQ(wait_for(start(killed, log)), 0) << bytes_of(log);
  int resumed = 0;
  const std::string said = bytes_of(log), text = "going on from step";
  for (size_t at = said.find(text); at != std::string::npos; at = said.find(text, at + 1)) ++resumed;
  EXPECT_GE(resumed, kKills / 2) << "too few went on: a busy machine lets a process end before it is killed";
  ASSERT_FALSE(bytes_of(whole + kLast).empty());
  EXPECT_EQ(bytes_of(killed + kLast), bytes_of(whole + kLast));
  ASSERT_FALSE(testing::log_scores(whole).empty());
  EXPECT_EQ(testing::log_scores(killed), testing::log_scores(whole));
}

TEST(PairRun, ALoadedModelHasTheAveragedWeights) {
  const ScratchFolder scratch;
  models::register_model({"pair", "", [](auto&, auto&) { return std::make_shared<testing::PairModel>(); }});
  ASSERT_EQ(wait_for(start(scratch.path("run"))), 0);
  const io::SafetensorsFile file(scratch.path("run") + kLast);
  const auto read = [&](const std::string& name) { return io::to_tensor(file.read(name)); };
  EXPECT_FALSE(read("average.generator").equal(read("model.generator")));
  const auto of = [](const LoadedModel& loaded, const char* name) { return loaded.model->named_parameters()[name]; };
  const LoadedModel averaged = load_model(scratch.path("run")),
                    trained = load_model(scratch.path("run"), {.averaged = false});
  EXPECT_TRUE(of(averaged, "generator").equal(read("average.generator")));
  EXPECT_TRUE(of(trained, "generator").equal(read("model.generator")));
  EXPECT_TRUE(of(averaged, "discriminator").equal(read("model.discriminator"))) << "has no average";
  EXPECT_TRUE(averaged.model->named_buffers()["mean"].equal(read("model.mean")));
}

}  // namespace
}  // namespace convssm::run
