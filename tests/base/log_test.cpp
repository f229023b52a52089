#include "convssm/base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "convssm/base/terminal.h"
#include "scratch_folder.h"

namespace convssm {
namespace {

// An environment variable for the time of a test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name), before_(getenv(name) ? getenv(name) : "") {
    setenv(name, value, 1);
  }
  ~Environment() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::string before_;
};

// Both ends of a terminal: what a program writes to out() is what a person would see.
class PseudoTerminal {
 public:
  PseudoTerminal() : reader_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (reader_ < 0 || grantpt(reader_) != 0 || unlockpt(reader_) != 0) return;
    out_ = fopen(ptsname(reader_), "w");
  }
  ~PseudoTerminal() {
    if (out_ != nullptr) fclose(out_);
    if (reader_ >= 0) close(reader_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  FILE* out() const { return out_; }
  std::string seen() const {
    char buffer[4096];
    const ssize_t size = read(reader_, buffer, sizeof buffer);
    return size < 0 ? "" : std::string(buffer, static_cast<size_t>(size));
  }

 private:
  int reader_;
  FILE* out_ = nullptr;
};

std::string logged_to_file(LogLevel level) {
  const ScratchFolder folder;
  FILE* file = fopen(folder.path("log").c_str(), "w");
  write_log(level, "the clip ends early", file);
  fclose(file);
  return read_text(folder.path("log"));
}

TEST(Log, PlainLinesInAFile) {
  const Environment term("TERM", "xterm");
  EXPECT_EQ(logged_to_file(LogLevel::info), "the clip ends early\n");
  EXPECT_EQ(logged_to_file(LogLevel::warning), "warning: the clip ends early\n");
  EXPECT_EQ(logged_to_file(LogLevel::error), "error: the clip ends early\n");
}

TEST(Log, FormatsItsArguments) {
  testing::internal::CaptureStderr();
  log_info("read {} clips", 3);
  log_warning("{}", "100% {}");
  log_error("{} {}", 1, "x");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "read 3 clips\nwarning: 100% {}\nerror: 1 x\n");
}

TEST(Log, ColorOnATerminalOnlyWithoutNoColor) {
  const PseudoTerminal terminal;
  if (terminal.out() == nullptr) GTEST_SKIP() << "no pseudo-terminals here";
  const Environment term("TERM", "xterm"), allow("NO_COLOR", "");
  EXPECT_TRUE(is_terminal(terminal.out()));
  write_log(LogLevel::warning, "w", terminal.out());
  EXPECT_EQ(terminal.seen(), "\r\x1b[K\x1b[1;33mwarning:\x1b[0m w\r\n");
  const Environment refuse("NO_COLOR", "1");
  write_log(LogLevel::warning, "w", terminal.out());
  EXPECT_EQ(terminal.seen(), "\r\x1b[Kwarning: w\r\n");
  const Environment dumb("TERM", "dumb");
  EXPECT_FALSE(is_terminal(terminal.out()));
}

TEST(Terminal, WidthFallsBackToColumnsThenEighty) {
  const ScratchFolder folder;
  FILE* file = fopen(folder.path("file").c_str(), "w");
  {
    const Environment columns("COLUMNS", "132");
    EXPECT_EQ(terminal_width(file), 132);
  }
  const Environment columns("COLUMNS", "wide");
  EXPECT_EQ(terminal_width(file), 80);
  fclose(file);
}

TEST(Log, NamesDoNotSteerTheTerminal) {
  ::testing::internal::CaptureStderr();
  log_error("no such file: {}",
            "a\x1b]0;title\x07\r\x7f\xc2\x9b"
            "2J \xc3\x89.npy\tb\n");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "error: no such file: a\\x1b]0;title\\x07\\x0d\\x7f\\xc2\\x9b2J \xc3\x89.npy\tb\n\n");
}

}  // namespace
}  // namespace convssm
