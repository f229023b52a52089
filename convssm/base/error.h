// Errors that reach a person: what was expected, what was found, what to do.
// Each carries a kind, and a kind is an exit code of the program.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace convssm {

enum class ErrorKind {
  usage,    // wrong arguments, shapes or options: exit code 2
  data,     // a file or dataset does not hold what it should: exit code 3
  io,       // the system refused to read or write: exit code 4
  numeric,  // NaN, infinity or divergence: exit code 5
};

// The exit code of the program for an error of this kind.
int exit_code(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// A file that is not what its format says: names the file, the byte offset and the reason.
class FormatError : public Error {
 public:
  FormatError(const std::string& file, uint64_t offset, const std::string& reason);
  const std::string& file() const { return file_; }
  uint64_t offset() const { return offset_; }
  const std::string& reason() const { return reason_; }

 private:
  std::string file_;
  uint64_t offset_;
  std::string reason_;
};

// fail(ErrorKind::usage, "[scan] L must be positive, got {}", L)
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(kind, fmt::format(text, std::forward<Args>(args)...));
}

// fail_io("cannot open clip.npy"): the message with the system's reason (errno) behind it.
[[noreturn]] void fail_io(const std::string& message);

}  // namespace convssm
