// Read until the end and not by the file's size, so that files of /proc, which report a size of 0, work too. Opened with
// O_NONBLOCK: to open a named pipe would otherwise wait, before it can be seen to be one.
#include "convssm/base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"

namespace convssm {
namespace {

class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) fail_io(fmt::format("cannot open '{}'", path));
  }
  ~OpenFile() { close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  uint64_t size() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) fail_io(fmt::format("cannot read '{}'", path_));
    if (!S_ISREG(status.st_mode)) fail(ErrorKind::io, "cannot read '{}': it is not a regular file", path_);
    return static_cast<uint64_t>(status.st_size);
  }

  // 0 at the end.
  size_t read(std::vector<char>& block) const {
    ssize_t got = -1;
    do {
      got = ::read(descriptor_, block.data(), block.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail_io(fmt::format("cannot read '{}'", path_));
    return static_cast<size_t>(got);
  }

 private:
  const std::string& path_;
  int descriptor_;
};

}  // namespace

std::string read_file(const std::string& path) {
  const OpenFile file(path);
  require_file_memory(path, "its content", file.size());
  std::string bytes;
  std::vector<char> block(1 << 16);
  while (const size_t got = file.read(block)) {
    require_file_memory(path, "its content", bytes.size() + got);  // it may have grown
    bytes.append(block.data(), got);
  }
  return bytes;
}

std::optional<std::string> try_read_file(const std::string& path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace convssm
