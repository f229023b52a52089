// The measurements are a program of their own, beside this one: who uses the library or the program does not load them.
#include "convssm/cli/bench.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "convssm/base/error.h"

namespace convssm::cli {
namespace {

// Options of the whole program may stand before the command's name.
std::vector<std::string> arguments(const CLI::App& command) {
  std::vector<std::string> words;
  for (const char* name : {"--threads", "--convolution", "--file-memory"}) {
    const CLI::Option* option = command.get_parent()->get_option(name);
    if (option->count() > 0) words.insert(words.end(), {name, option->as<std::string>()});
  }
  const auto rest = command.remaining();
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

[[noreturn]] void start(const CLI::App& command) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").replace_filename("convssm-bench");
  std::vector<std::string> words = arguments(command);
  words.insert(words.begin(), program.string());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  fail_io("cannot start " + program.string() + ", which measures (make builds it beside convssm)");
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Measure speeds of this machine against their limits");
  command->fallthrough(false);  // what follows is all for the other program, --help too
  command->set_help_flag();
  command->prefix_command();
  command->callback([command] { start(*command); });
}

}  // namespace convssm::cli
