// Where the walks of `convssm serve` begin: in the world that a model learned from, or after a recording.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convssm/run/model_file.h"
#include "convssm/serve/beginnings.h"
#include "convssm/serve/host.h"

namespace convssm::cli {

struct ServeCommand {
  std::string model;  // run folder, exported folder or model file
  int64_t step = -1;  // of the checkpoint; -1: the newest
  std::string world, context;
  int64_t context_frames = 0;  // 0: as the evaluation of the model, or the whole recording
  serve::HostOptions host;
  std::string memory = "1GiB", device = "cpu";
  int64_t idle = 600;  // seconds
  bool without_average = false;
  std::vector<std::string> overrides;  // data.size=5, model.temperature=0.8
};

// Says what was found. Error(usage) if nothing tells where to begin.
std::unique_ptr<serve::Beginnings> find_beginnings(const ServeCommand& command, const run::LoadedModel& loaded);

// Whether training hid actions at times, so that one may be left out.
bool mask_learned(const run::LoadedModel& loaded);

}  // namespace convssm::cli
