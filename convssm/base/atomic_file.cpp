// mkstemp makes the temporary file in the target's own folder, since rename() replaces a file in one step only within a
// file system. commit() flushes the data before the rename and the folder after it: in any other order a crash could
// leave an empty file under the final name, or lose the name.
#include "convssm/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "convssm/base/error.h"

namespace convssm {
namespace {

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// mkstemp makes files that only the owner may read; a result file follows the user's umask.
void follow_umask(int descriptor) {
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, 0666 & ~mask);
}

void sync_folder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // the rename has happened; a folder that cannot be opened cannot be synced
  fsync(descriptor);
  close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  const std::string pattern = path + ".tmp-XXXXXX";
  std::vector<char> name(pattern.begin(), pattern.end());
  name.push_back('\0');
  const int descriptor = mkstemp(name.data());
  if (descriptor < 0) fail_io(fmt::format("cannot create a file in '{}' for '{}'", folder_of(path), path));
  temporary_ = name.data();
  follow_umask(descriptor);
  file_ = fdopen(descriptor, "wb");
  if (file_ == nullptr) {
    close(descriptor);
    unlink(temporary_.c_str());
    fail_io(fmt::format("cannot write '{}'", path));
  }
}

AtomicFile::~AtomicFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t size) {
  if (size != 0 && std::fwrite(data, 1, size, file_) != size) fail_io(fmt::format("cannot write '{}'", path_));
}

void AtomicFile::seek(uint64_t offset) {
  if (fseeko(file_, static_cast<off_t>(offset), SEEK_SET) != 0) fail_io(fmt::format("cannot write '{}'", path_));
}

void AtomicFile::commit() {
  if (std::ferror(file_) != 0) fail(ErrorKind::io, "cannot write '{}': an earlier write failed", path_);
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) fail_io(fmt::format("cannot write '{}'", path_));
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_io(fmt::format("cannot replace '{}'", path_));
  std::fclose(file_);
  file_ = nullptr;
  sync_folder(folder_of(path_));
}

void replace_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace convssm
