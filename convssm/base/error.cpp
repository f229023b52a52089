// The exit code of each kind stands here and nowhere else. fail_io reads errno before it formats anything, as
// formatting may change it.
#include "convssm/base/error.h"

#include <cerrno>
#include <cstring>

namespace convssm {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return 2;
    case ErrorKind::data:
      return 3;
    case ErrorKind::io:
      return 4;
    case ErrorKind::numeric:
      return 5;
  }
  return 1;
}

FormatError::FormatError(const std::string& file, uint64_t offset, const std::string& reason)
    : Error(ErrorKind::data, fmt::format("{}: at byte {}: {}", file, offset, reason)),
      file_(file),
      offset_(offset),
      reason_(reason) {}

void fail_io(const std::string& message) {
  const int code = errno;
  throw Error(ErrorKind::io, fmt::format("{}: {}", message, std::strerror(code)));
}

}  // namespace convssm
