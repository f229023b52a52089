// With an error code instead of an exception: std::filesystem's own message is long and carries no exit code.
#include "convssm/base/folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "convssm/base/error.h"

namespace convssm {

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(ErrorKind::io, "cannot make the folder {}: {}", path, error.message());
}

// Some file systems have no such thing for folders (EINVAL).
void sync_folder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // it may be written but not listed: then it cannot be synced
  const bool failed = fsync(descriptor) != 0 && errno != EINVAL;
  const int reason = errno;
  close(descriptor);
  errno = reason;
  if (failed) fail_io(fmt::format("cannot write the folder '{}' to the disk", folder));
}

}  // namespace convssm
