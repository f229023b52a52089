#include "convssm/cli/data.h"

#include <CLI/CLI.hpp>

namespace convssm::cli {

void add_data(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "data", "Make a dataset, say what is in a file and how it would be read, encode or convert it");
  command->require_subcommand(1);
  add_data_make(*command);
  add_data_inspect(*command);
  add_data_encode(*command);
  add_data_convert(*command);
  command->footer("Example:\n  convssm data make digits --clips 100 --frames 50\n  convssm data inspect digits");
}

}  // namespace convssm::cli
