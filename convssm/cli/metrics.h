// convssm metrics: every metric by name, with its definition, input and reference.
#pragma once

#include <CLI/App.hpp>

namespace convssm::cli {

void add_metrics(CLI::App& app);

}  // namespace convssm::cli
