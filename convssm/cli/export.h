// convssm export: a run as a small folder to keep or to give away.
#pragma once

#include <CLI/App.hpp>

namespace convssm::cli {

void add_export(CLI::App& app);

}  // namespace convssm::cli
