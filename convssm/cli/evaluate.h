// convssm evaluate: the scores of a run over the horizon.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace convssm::cli {

struct EvaluateCommand {
  std::string model;                   // run folder or model file
  std::vector<std::string> overrides;  // evaluate.samples=64, data.test_clips=64
  std::string out;    // folder of metrics.json and pictures; empty: the run folder, for a model the current one
  int64_t step = -1;  // of the checkpoint; -1: the newest
  std::vector<std::string> also = {};  // more models, whose futures are members too
  std::string weights = {};            // folder of trained weights of metrics; empty: the usual one
  std::string features = {};           // folder that keeps features of clips for FVD; empty: none
  std::string engine = "plan", precision = "float32", device = "cpu";
  bool without_average = false;  // the weights as trained
  bool timing = false;           // other frame rates and missing frames instead of the horizon
};

void add_evaluate(CLI::App& app);
void run_evaluate(const EvaluateCommand& command);

}  // namespace convssm::cli
