#include "convssm/cli/program.h"

#include <c10/util/Exception.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <exception>
#include <filesystem>
#include <new>
#include <string>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/base/log.h"
#include "convssm/base/memory.h"
#include "convssm/base/version.h"
#include "convssm/cli/exit_status.h"

namespace convssm::cli {
namespace {

int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  std::string command = app.get_name();
  for (const CLI::App* chosen : app.get_subcommands()) command += " " + chosen->get_name();
  log_error("{}. See {} --help", error.what(), command);
  return exit_code(ErrorKind::usage);
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

void limit_files(const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) fail(ErrorKind::usage, "--file-memory must be a number with a unit such as 4GiB, got '{}'", text);
  set_file_memory_limit(*bytes);
}

void log_trials() {
  for (const auto& [shape, direct, winograd] : ops::conv_trials()) {
    log_info("convolution of {} to {} channels, {} frames of {}x{}: direct {:.3f} ms, Winograd {:.3f} ms", shape.in,
             shape.out, shape.frames, shape.height, shape.width, direct, winograd);
  }
}

}  // namespace

void add_program_options(CLI::App& app, ops::RuntimeOptions& runtime) {
  app.set_version_flag("--version", app.get_name() + " " + kVersion);
  app.add_option("--threads", runtime.threads, "Threads to use; by default OMP_NUM_THREADS or all cores")
      ->check(positive_number());
  const auto choose = [&runtime](const std::string& text) { runtime.convolution = ops::parse_conv_algorithm(text); };
  app.add_option_function<std::string>(
      "--convolution", choose,
      "How 3x3 convolutions run: auto (Winograd where it applies), measured (the faster "
      "in a trial per shape) or direct");
  app.add_option_function<std::string>("--file-memory", limit_files,
                                       "What the content of one file may take of memory (default 1GiB)")
      ->type_name("SIZE");
  app.parse_complete_callback([&runtime] { ops::start_runtime(runtime); });
}

CLI::Validator positive_number() {
  const auto check = [](const std::string& text) {
    int64_t value = 0;
    const auto end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    const bool good = read.ec == std::errc() && read.ptr == end && value > 0;
    return good ? std::string() : "expected a whole number above 0, got " + text;
  };
  return {check, "POSITIVE"};
}

int parse_and_run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error);
  }
  log_trials();
  return exit_status();
}

int run_program(const std::function<int()>& run) {
  try {
    return run();
  } catch (const Error& error) {
    log_error("{}", error.what());
    return exit_code(error.kind());
  } catch (const c10::Error& error) {
    return report_libtorch(error);
  } catch (const std::filesystem::filesystem_error& error) {
    log_error("{}", error.what());
    return exit_code(ErrorKind::io);
  } catch (const std::bad_alloc&) {
    return report_memory();
  } catch (const std::exception& error) {
    log_error("{}", error.what());
    return 1;
  }
}

}  // namespace convssm::cli
