// convssm demo: train a small model from scratch, evaluate it, and let it run on.
#pragma once

#include <CLI/App.hpp>

namespace convssm::cli {

void add_demo(CLI::App& app);

}  // namespace convssm::cli
