// convssm serve: a page on which one walks through what a model has learned.
#pragma once

#include <CLI/App.hpp>

namespace convssm::cli {

void add_serve(CLI::App& app);

}  // namespace convssm::cli
