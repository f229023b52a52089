// convssm weights: which trained weights of metrics are there, and how others come in.
#pragma once

#include <CLI/App.hpp>

namespace convssm::cli {

void add_weights(CLI::App& app);

}  // namespace convssm::cli
