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
#include "convssm/run/model_file.h"
#include "tests/base/scratch_folder.h"
#include "tests/models/toys.h"

namespace convssm::run {
namespace {

constexpr const char* kSteps = "400";

pid_t start(const std::string& folder) {
  const pid_t child = fork();
  if (child != 0) return child;
  const int quiet = open("/dev/null", O_WRONLY);
  dup2(quiet, STDERR_FILENO);
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

TEST(PairRun, KilledAtRandomMomentsEndsWithTheSameBytes) {
  const ScratchFolder scratch;
  const std::string whole = scratch.path("whole"), killed = scratch.path("killed");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(wait_for(start(whole)), 0);
  const double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::mt19937 random(std::random_device{}());
  std::uniform_real_distribution<double> moment(0.3 * all, all);
  int kills = 0;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = start(killed);
    std::this_thread::sleep_for(std::chrono::duration<double>(moment(random)));
    kill(child, SIGKILL);
    kills += wait_for(child) == 128 + SIGKILL;
  }
  ASSERT_EQ(wait_for(start(killed)), 0);
  EXPECT_GT(kills, 0);
  EXPECT_EQ(bytes_of(killed + kLast), bytes_of(whole + kLast)) << "after " << kills << " kills";
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
