// The commands, one per file, and which of them a command line means.
#include "convssm/cli/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"
#include "convssm/cli/bench.h"
#include "convssm/cli/compare.h"
#include "convssm/cli/data.h"
#include "convssm/cli/demo.h"
#include "convssm/cli/doctor.h"
#include "convssm/cli/evaluate.h"
#include "convssm/cli/export.h"
#include "convssm/cli/generate.h"
#include "convssm/cli/metrics.h"
#include "convssm/cli/models.h"
#include "convssm/cli/program.h"
#include "convssm/cli/results.h"
#include "convssm/cli/serve.h"
#include "convssm/cli/train.h"
#include "convssm/cli/weights.h"

namespace convssm::cli {
namespace {

void add_commands(CLI::App& app) {
  add_train(app);
  add_generate(app);
  add_serve(app);
  add_evaluate(app);
  add_export(app);
  add_compare(app);
  add_metrics(app);
  add_weights(app);
  add_models(app);
  add_demo(app);
  add_doctor(app);
  add_bench(app);
  add_results(app);
  add_data(app);
}

void set_up(CLI::App& app, ops::RuntimeOptions& runtime) {
  app.name("convssm");
  app.require_subcommand(1);
  app.fallthrough();
  add_program_options(app, runtime);
  app.footer("Example:\n  convssm doctor\nEach command explains itself: convssm COMMAND --help");
}

std::vector<std::string> command_names(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// The command that a word was meant to be: by its letters, as the beginning of one, or below another one.
std::string meant_command(CLI::App& app, const std::string& word) {
  const auto known = command_names(app);
  if (const std::string close = nearest(word, known); !close.empty()) return close;
  for (const std::string& name : known) {
    if (word.size() > 1 && name.starts_with(word)) return name;
  }
  for (CLI::App* command : app.get_subcommands({})) {
    const std::string below = nearest(word, command_names(*command));
    if (!below.empty()) return command->get_name() + " " + below;
  }
  return "";
}

// The first of the arguments that is no option of `app` or of all commands, and no value of one.
std::span<char*> from_first_word(CLI::App& app, std::span<char*> arguments) {
  while (!arguments.empty() && arguments[0][0] == '-') {
    const CLI::Option* option = app.get_option_no_throw(arguments[0]);
    if (!option && app.get_parent()) option = app.get_parent()->get_option_no_throw(arguments[0]);
    const size_t taken = option && option->get_expected_min() > 0 ? 2 : 1;
    arguments = arguments.subspan(std::min(taken, arguments.size()));
  }
  return arguments;
}

// CLI11 would only say that an argument was not expected.
void check_command(CLI::App& app, std::span<char*> arguments) {
  arguments = from_first_word(app, arguments);
  const auto known = command_names(app);
  if (arguments.empty() || known.empty()) return;
  const std::string word = arguments[0];
  for (CLI::App* command : app.get_subcommands({})) {
    if (command->check_name(word)) return check_command(*command, arguments.subspan(1));
  }
  const std::string close = meant_command(app, word);
  const std::string hint = close.empty() ? "" : fmt::format(" Did you mean '{}'?", close);
  fail(ErrorKind::usage, "unknown command '{}'.{} Commands: {}", word, hint, fmt::join(known, ", "));
}

int run(int argc, char** argv) {
  CLI::App app("Learns how a scene changes from long recordings of it, and rolls it forward.");
  ops::RuntimeOptions runtime;
  set_up(app, runtime);
  add_commands(app);
  if (argc < 2) {
    fmt::print(stderr, "{}", app.help());
    return exit_code(ErrorKind::usage);
  }
  check_command(app, std::span(argv, static_cast<size_t>(argc)).subspan(1));
  return parse_and_run(app, argc, argv);
}

}  // namespace

int run_commands(int argc, char** argv) {
  return run_program([&] { return run(argc, argv); });
}

}  // namespace convssm::cli
