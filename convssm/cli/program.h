// What the programs share: the options of the runtime, and that whatever goes wrong ends as one message on stderr and an
// exit code: 0 ok, 2 usage, 3 data or format, 4 I/O or memory, 5 numeric.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <functional>

#include "convssm/ops/runtime.h"

namespace convssm::cli {

// --version, --threads, --convolution and --file-memory; the runtime is started once they are parsed, before any callback.
void add_program_options(CLI::App& app, ops::RuntimeOptions& runtime);

// For options that are whole numbers above 0; CLI11's own names the largest number there is.
CLI::Validator positive_number();

// Parses and thereby runs. For --help and mistakes in usage, the exit code.
int parse_and_run(CLI::App& app, int argc, char** argv);

// The exit code of `run`, or that of the error it ends with.
int run_program(const std::function<int()>& run);

}  // namespace convssm::cli
