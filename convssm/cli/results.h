// convssm results: runs side by side, on the terminal, as pictures and on a page.
#pragma once

#include <CLI/App.hpp>

namespace convssm::cli {

void add_results(CLI::App& app);

}  // namespace convssm::cli
