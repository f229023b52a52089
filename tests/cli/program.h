// Runs the program as a process, as a user does, and catches what it says.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace convssm {

struct Outcome {
  int code;
  std::string out, err;
};

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string scratch_path(const std::string& name) {
  return ::testing::TempDir() + "convssm-cli-" + std::to_string(getpid()) + "-" + name;
}

// Runs the program; `environment` is put in front, e.g. "NAME=value".
inline Outcome run(const std::string& arguments, const std::string& environment = "") {
  const std::string out = scratch_path("out"), err = scratch_path("err");
  const std::string command =
      environment + " '" + CONVSSM_PROGRAM + "' " + arguments + " >'" + out + "' 2>'" + err + "' </dev/null";
  const int status = std::system(command.c_str());
  Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_all(out), read_all(err)};
  std::remove(out.c_str());
  std::remove(err.c_str());
  return outcome;
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

}  // namespace convssm
