// convssm evaluate --timing: a run at other frame rates, and with frames missing.
#pragma once

#include <memory>
#include <string>

#include "convssm/data/dataset.h"
#include "convssm/run/config.h"
#include "convssm/run/model_file.h"

namespace convssm::cli {

// With `trained`, the dataset of the config. Writes timing.json, timing_rates.png and timing_dropped.png into the folder
// `out` and prints the tables.
void run_timing(const run::LoadedModel& loaded, const run::Config& config, std::shared_ptr<const data::Dataset> trained,
                const std::string& out);

}  // namespace convssm::cli
