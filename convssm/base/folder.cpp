// With an error code instead of an exception: std::filesystem's own message is long and carries no exit code.
#include "convssm/base/folder.h"

#include <filesystem>

#include "convssm/base/error.h"

namespace convssm {

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(ErrorKind::io, "cannot make the folder {}: {}", path, error.message());
}

}  // namespace convssm
