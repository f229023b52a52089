// convssm train: a run from a config, or the rest of one.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace convssm::cli {

struct TrainCommand {
  std::string config;                  // path; may be empty with resume
  std::vector<std::string> overrides;  // train.lr=1e-4
  std::string run;                     // folder; empty: runs/ and the name of the config
  bool resume = false;
  std::string device = "cpu";
};

void add_train(CLI::App& app);

// Returns the exit code: 0 when the last step is done, 128 + signal when it was stopped.
int run_train(const TrainCommand& command);

}  // namespace convssm::cli
