// The program: one sub-command per file. Whatever goes wrong ends as one message on stderr and an exit code:
// 0 ok, 2 usage, 3 data or format, 4 I/O or memory, 5 numeric.
#include <c10/util/Exception.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/nearest.h"
#include "convssm/base/version.h"
#include "convssm/cli/bench.h"
#include "convssm/cli/compare.h"
#include "convssm/cli/data.h"
#include "convssm/cli/demo.h"
#include "convssm/cli/doctor.h"
#include "convssm/cli/evaluate.h"
#include "convssm/cli/exit_status.h"
#include "convssm/cli/export.h"
#include "convssm/cli/generate.h"
#include "convssm/cli/metrics.h"
#include "convssm/cli/models.h"
#include "convssm/cli/results.h"
#include "convssm/cli/train.h"
#include "convssm/cli/weights.h"
#include "convssm/ops/runtime.h"

namespace convssm::cli {
namespace {

void add_commands(CLI::App& app) {
  add_train(app);
  add_generate(app);
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
  app.set_version_flag("--version", std::string("convssm ") + kVersion);
  app.add_option("--threads", runtime.threads, "Threads to use; by default OMP_NUM_THREADS or all cores")
      ->check(CLI::PositiveNumber);
  const auto choose = [&runtime](const std::string& text) { runtime.convolution = ops::parse_conv_algorithm(text); };
  app.add_option_function<std::string>(
      "--convolution", choose,
      "How 3x3 convolutions run: auto (Winograd where it applies), measured (the faster "
      "in a trial per shape) or direct");
  app.footer("Example:\n  convssm doctor\nEach command explains itself: convssm COMMAND --help");
  // Before the callback of the sub-command, with the options parsed.
  app.parse_complete_callback([&runtime] { ops::start_runtime(runtime); });
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

void log_trials() {
  for (const auto& [shape, direct, winograd] : ops::conv_trials()) {
    log_info("convolution of {} to {} channels, {} frames of {}x{}: direct {:.3f} ms, Winograd {:.3f} ms", shape.in,
             shape.out, shape.frames, shape.height, shape.width, direct, winograd);
  }
}

int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  std::string command = "convssm";
  for (const CLI::App* chosen : app.get_subcommands()) command += " " + chosen->get_name();
  log_error("{}. See {} --help", error.what(), command);
  return exit_code(ErrorKind::usage);
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error);
  }
  log_trials();
  return exit_status();
}

int report_memory() {
  log_error(
      "out of memory. Use shorter clips, smaller batches or a smaller model; 'convssm doctor' shows what there is");
  return exit_code(ErrorKind::io);
}

int report_libtorch(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  if (text.find("can't allocate memory") != std::string::npos) return report_memory();
  log_error("{}", text.substr(0, text.find('\n')));
  return exit_code(ErrorKind::usage);
}

}  // namespace
}  // namespace convssm::cli

int main(int argc, char** argv) {
  try {
    return convssm::cli::run(argc, argv);
  } catch (const convssm::Error& error) {
    convssm::log_error("{}", error.what());
    return convssm::exit_code(error.kind());
  } catch (const c10::Error& error) {
    return convssm::cli::report_libtorch(error);
  } catch (const std::filesystem::filesystem_error& error) {
    convssm::log_error("{}", error.what());
    return convssm::exit_code(convssm::ErrorKind::io);
  } catch (const std::bad_alloc&) {
    return convssm::cli::report_memory();
  } catch (const std::exception& error) {
    convssm::log_error("{}", error.what());
    return 1;
  }
}
