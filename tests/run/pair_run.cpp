// Trains the toy pair of generator and discriminator in a run folder, or goes on: a process for a test to kill.
//   pair_run FOLDER STEPS
#include <torch/torch.h>

#include <cstdio>
#include <string>

#include "convssm/base/error.h"
#include "convssm/models/registry.h"
#include "convssm/ops/runtime.h"
#include "convssm/run/training_run.h"
#include "tests/models/toy_data.h"
#include "tests/models/toys.h"

using namespace convssm;

int main(int, char** argv) try {
  ops::start_runtime();
  data::register_dataset(
      {"noise", "", [](auto&, uint64_t) { return std::make_shared<convssm::testing::NoiseClips>(); }});
  models::register_model({"pair", "", [](auto&, auto&) { return std::make_shared<convssm::testing::PairModel>(); }});
  const nlohmann::json config = {
      {"model", {{"name", "pair"}}},
      {"data", {{"name", "noise"}}},
      {"train",
       {{"steps", std::stoll(argv[2])},
        {"batch", 2},
        {"frames", 3},
        {"warmup", 5},
        {"ema", 0.99},
        {"save_interval", 7},
        {"log_interval", 10},
        {"sample_interval", 0},
        {"players",
         {{"discriminator", {{"lr", 3e-3}, {"beta1", 0.5}, {"start", 20}, {"clip_norm", 1}, {"ema", 0}}}}}}}};
  run::RunFolder folder(argv[1]);
  run::TrainingRun training(run::Config::from_json(config), folder, true);
  const StopRequest stop;
  return training.run(stop) == train::Outcome::finished ? 0 : stop.exit_code();
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return exit_code(error.kind());
}
