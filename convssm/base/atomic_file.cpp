// mkstemp makes the temporary file in the target's own folder, since rename() replaces a file in one step only within a
// file system. commit() flushes the data before the rename and the folder after it: in any other order a crash could
// leave an empty file under the final name, or lose the name.
#include "convssm/base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/folder.h"

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

constexpr const char* temporary_mark = ".convssm-tmp-";  // that no file of a user has
constexpr size_t random_letters = 6;                     // that mkstemp fills in

bool is_temporary(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  const size_t mark = name.rfind(temporary_mark);
  if (mark == name.npos || mark == 0) return false;
  const std::string letters = name.substr(mark + std::string(temporary_mark).size());
  return letters.size() == random_letters &&
         std::ranges::all_of(letters, [](unsigned char c) { return std::isalnum(c) != 0; });
}

// A file that is being written is locked by its writer, however many processes share the folder.
void remove_unless_written(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return;
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) unlink(file.c_str());
  close(descriptor);
}

// A new file of its own beside `path`, locked: see remove_temporary_files(), which may remove it before it is.
int make_locked(const std::string& path, std::string& name) {
  for (;;) {
    name = path + temporary_mark + std::string(random_letters, 'X');
    const int descriptor = mkstemp(name.data());
    if (descriptor < 0) fail_io(fmt::format("cannot create a file in '{}' for '{}'", folder_of(path), path));
    flock(descriptor, LOCK_EX);
    struct stat found {};
    if (fstat(descriptor, &found) != 0 || found.st_nlink > 0) return descriptor;
    close(descriptor);
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  const int descriptor = make_locked(path, temporary_);
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

void remove_temporary_files(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> old;
  fs::directory_iterator entries(folder, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    if (entries->is_regular_file(error) && is_temporary(entries->path())) old.push_back(entries->path());
  }
  for (const fs::path& file : old) remove_unless_written(file);
}

void replace_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace convssm
