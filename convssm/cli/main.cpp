#include "convssm/cli/commands.h"

int main(int argc, char** argv) { return convssm::cli::run_commands(argc, argv); }
