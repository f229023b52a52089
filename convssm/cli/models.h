// convssm models: what can be trained, and how large the models of configs are.
#pragma once

#include <CLI/App.hpp>

namespace convssm::cli {

void add_models(CLI::App& app);

}  // namespace convssm::cli
