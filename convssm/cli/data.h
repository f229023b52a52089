// convssm data: make a dataset, or say what is in a file and how it would be read.
#pragma once

#include <CLI/App.hpp>

namespace convssm::cli {

void add_data(CLI::App& app);

// The sub-commands of it.
void add_data_make(CLI::App& data);
void add_data_inspect(CLI::App& data);

}  // namespace convssm::cli
