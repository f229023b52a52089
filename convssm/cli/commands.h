// The program, all but main().
#pragma once

namespace convssm::cli {

int run_commands(int argc, char** argv);  // the exit code; errors are told on stderr

}  // namespace convssm::cli
