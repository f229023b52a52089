// convssm doctor: what this machine has, and what to do about each bad finding.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "convssm/cli/findings.h"

namespace convssm::cli {

void add_doctor(CLI::App& app);

// The parts of the examination.
std::vector<Finding> examine_software();
std::vector<Finding> examine_blas();  // takes part of a second: it times a matrix product
std::vector<Finding> examine_processor();
std::vector<Finding> examine_memory();
std::vector<Finding> examine_disk();

}  // namespace convssm::cli
