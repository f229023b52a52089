// renameat2() exchanges two folders in one step; where a file system cannot do that, two renames do. Between them the old
// folder has another name, from which it is taken back: at once if the second one fails, by the next writer after a crash.
// What stays of the old folder is linked into the new one before, not moved after.
#include "convssm/base/staged_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/folder.h"

namespace convssm {
namespace {

namespace fs = std::filesystem;

constexpr const char* staged_mark = ".staged-";
constexpr const char* old_mark = "-old";  // after it: the target, while another folder takes its name

// Without a slash at its end, and of a link the folder that it names.
std::string real_path(const std::string& target) {
  const fs::path path = fs::weakly_canonical(fs::absolute(target));
  return (path.has_filename() ? path : path.parent_path()).string();
}

int lock_folder(const std::string& folder) {
  const int lock = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && fs::exists(folder)) return lock;
  if (lock >= 0) close(lock);
  return -1;
}

void remove_left_overs(const fs::path& target) {
  const std::string begin = target.filename().string() + staged_mark;
  std::error_code error;
  std::vector<std::string> old;
  for (const auto& entry : fs::directory_iterator(target.parent_path(), error)) {
    if (entry.path().filename().string().starts_with(begin)) old.push_back(entry.path().string());
  }
  for (const std::string& folder : old) {
    if (folder.ends_with(old_mark) && !fs::exists(target)) {
      rename(folder.c_str(), target.c_str());
      continue;
    }
    const int lock = lock_folder(folder);
    if (lock < 0) continue;  // somebody is writing it
    fs::remove_all(folder, error);
    close(lock);
  }
}

void follow_mode(const std::string& folder, const std::string& target) {
  struct stat old {};
  const mode_t mask = umask(0);
  umask(mask);
  const bool follows = stat(target.c_str(), &old) == 0 && S_ISDIR(old.st_mode);
  chmod(folder.c_str(), follows ? old.st_mode & 07777 : 0777 & ~mask);
}

// Flushes a file, or all of the file system that a folder is in: one wait instead of one for each of its files.
void sync_content(const std::string& path, int (*sync)(int)) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool failed = descriptor < 0 || sync(descriptor) != 0;
  const int reason = errno;
  if (descriptor >= 0) close(descriptor);
  errno = reason;
  if (failed) fail_io(fmt::format("cannot write '{}' to the disk", path));
}

}  // namespace

bool exchange_folders(const std::string& staged, const std::string& target, bool in_one_step) {
  if (!fs::exists(target)) return rename(staged.c_str(), target.c_str()) == 0;
  if (in_one_step && renameat2(AT_FDCWD, staged.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return true;
  const std::string aside = staged + old_mark;
  if (rename(target.c_str(), aside.c_str()) != 0) return false;
  if (rename(staged.c_str(), target.c_str()) == 0) return rename(aside.c_str(), staged.c_str()) == 0;
  const int reason = errno;
  rename(aside.c_str(), target.c_str());
  errno = reason;
  return false;
}

StagedFolder::StagedFolder(const std::string& target) : target_(real_path(target)) {
  make_folder(fs::path(target_).parent_path().string());
  remove_left_overs(target_);
  // Another process may take the new folder for a left-over before it is locked; some file systems have no locks at all.
  for (int tries = 0; tries < 3 && lock_ < 0; ++tries) {
    std::string name = target_ + staged_mark + "XXXXXX";
    if (!staged_.empty()) fs::remove(staged_);
    if (mkdtemp(name.data()) == nullptr) fail_io(fmt::format("cannot make a folder beside '{}'", target));
    staged_ = name;
    lock_ = lock_folder(staged_);
  }
  follow_mode(staged_, target_);
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  fs::remove_all(staged_, ignored);
  if (lock_ >= 0) close(lock_);
}

void StagedFolder::keep_others(std::span<const char* const> own) const {
  if (!fs::exists(target_)) return;
  for (const auto& entry : fs::directory_iterator(target_)) {
    const std::string name = entry.path().filename().string();
    if (std::ranges::any_of(own, [&](const char* mine) { return name == mine; })) continue;
    constexpr auto how = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
    std::error_code error;
    fs::copy(entry.path(), path(name), how | fs::copy_options::create_hard_links, error);
    if (error) fs::copy(entry.path(), path(name), how | fs::copy_options::overwrite_existing, error);
    if (error) fail(ErrorKind::io, "cannot keep '{}': {}", entry.path().string(), error.message());
  }
}

void StagedFolder::commit(std::span<const char* const> own) {
  keep_others(own);
  if (!exchange_folders(staged_, target_)) fail_io(fmt::format("cannot replace the folder '{}'", target_));
}

void StagedFolder::commit_whole() {
  sync_content(staged_, syncfs);
  if (!exchange_folders(staged_, target_)) fail_io(fmt::format("cannot replace the folder '{}'", target_));
  sync_folder(fs::path(target_).parent_path().string());
}

void StagedFolder::commit_file(const std::string& name) {
  sync_content(path(name), fsync);
  if (rename(path(name).c_str(), target_.c_str()) != 0) fail_io(fmt::format("cannot replace '{}'", target_));
  sync_folder(fs::path(target_).parent_path().string());
}

}  // namespace convssm
