// convssm evaluate --timing: a run at other frame rates, and with frames missing.
#pragma once

#include <string>

#include "convssm/models/model_file.h"
#include "convssm/train/config.h"

namespace convssm::cli {

// Writes timing.json, timing_rates.png and timing_dropped.png into the folder `out` and prints the tables.
void run_timing(const models::LoadedModel& loaded, const train::Config& config, const std::string& out);

}  // namespace convssm::cli
