// convssm generate: the frames after a recording.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "convssm/generate/context.h"

namespace convssm::cli {

struct GenerateCommand {
  std::string model;              // run folder or model file
  int64_t step = -1;              // of the checkpoint; -1: the newest
  std::vector<std::string> also;  // more models, whose futures are members too
  std::string context, state, out, save_state;
  std::string actions;  // file of those that lead to the frames to generate
  std::string observe;  // recording of true frames that a state takes in
  generate::ContextOptions reading;
  int64_t frames = -1;        // to generate; -1: one for each of `actions`, without them 100
  int64_t samples = 1;        // futures of each clip, of each model
  uint64_t seed = 1;          // of the futures
  double perturb = 0;         // noise on what the model remembers, but for the first future of a clip
  bool with_context = false;  // the file begins with the context
  double fps = 10;
  int64_t scale = 0;  // 0: small frames are enlarged to about 64 pixels
  bool force = false;
  bool without_average = false;  // the weights as trained
  std::string size = {};         // of the frames, "48x64"; empty: that of training
  int64_t batch = 0;             // clips side by side; 0: all
  std::string precision = "float32", engine = "plan", device = "cpu";
  std::vector<std::string> overrides;  // model.core.window=100
};

void add_generate(CLI::App& app);
void run_generate(const GenerateCommand& command);

}  // namespace convssm::cli
