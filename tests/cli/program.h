// Runs the program in a process of its own, as a user does, and catches what it says. That process is a copy of the test's,
// in which libtorch is loaded: loading it takes half a second, and the tests run hundreds of commands. With something to
// put in front, or words that only a shell understands, a shell starts the program that was built.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "convssm/cli/commands.h"

namespace convssm {

struct Outcome {
  int code;  // 128 + signal if it ended by one
  std::string out, err;
};

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string scratch_path(const std::string& name) {
  return ::testing::TempDir() + "convssm-cli-" + std::to_string(getpid()) + "-" + name;
}

// The words of a command line as a shell sees them; none if it has more than words.
inline std::vector<std::string> words_of(const std::string& line) {
  wordexp_t found;
  if (wordexp(line.c_str(), &found, WRDE_NOCMD | WRDE_UNDEF) != 0) return {};
  std::vector<std::string> words(found.we_wordv, found.we_wordv + found.we_wordc);
  wordfree(&found);
  return words;
}

// Ends this process as the program would.
[[noreturn]] inline void become_program(std::vector<std::string> words) {
  words.insert(words.begin(), CONVSSM_PROGRAM);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::exit(cli::run_commands(static_cast<int>(words.size()), argv.data()));
}

inline int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Starts the program and does not wait for it; it is ended by SIGALRM after five minutes. What it says goes to the end of
// the files.
inline pid_t start(const std::vector<std::string>& words, const std::string& out, const std::string& err) {
  std::fflush(nullptr);  // or both processes would write what is left
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(300);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644), STDOUT_FILENO);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644), STDERR_FILENO);
  become_program(words);
}

// Runs the program; `before` is put in front of it, e.g. "NAME=value".
inline Outcome run(const std::string& arguments, const std::string& before = "") {
  const std::string out = scratch_path("out"), err = scratch_path("err");
  const auto words = before.empty() ? words_of(arguments) : std::vector<std::string>{};
  int code = 0;
  if (!words.empty()) {
    code = wait_for(start(words, out, err));
  } else {
    const std::string line = before + " '" + CONVSSM_PROGRAM + "' " + arguments;
    const int status = std::system((line + " >'" + out + "' 2>'" + err + "' </dev/null").c_str());
    code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  Outcome outcome{code, read_all(out), read_all(err)};
  std::remove(out.c_str());
  std::remove(err.c_str());
  return outcome;
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

}  // namespace convssm
