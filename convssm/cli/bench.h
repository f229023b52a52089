// convssm bench: speeds of this machine against their limits.
#pragma once

#include <CLI/App.hpp>

namespace convssm::cli {

void add_bench(CLI::App& app);

}  // namespace convssm::cli
