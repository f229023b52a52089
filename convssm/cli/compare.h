// convssm compare: scores samples of any project against their truth.
#pragma once

#include <CLI/App.hpp>

namespace convssm::cli {

void add_compare(CLI::App& app);

}  // namespace convssm::cli
