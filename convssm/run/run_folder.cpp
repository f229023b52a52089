// One writer at a time: the lock is the file system's own and ends with the process, however it ends.
#include "convssm/run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/base/json.h"
#include "convssm/base/read_file.h"
#include "convssm/run/checkpoint.h"

namespace convssm::run {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& path) {
  const std::string text = try_read_file(path).value_or("");
  return text.substr(0, text.find('\n'));
}

// Of a line of the log; of what is none, later than any.
int64_t step_of(const nlohmann::json& line) {
  const auto step = line.is_object() ? line.find("step") : line.end();
  if (step == line.end()) return line.is_object() ? 0 : INT64_MAX;
  return step->is_number_integer() ? step->get<int64_t>() : INT64_MAX;
}

int take_lock(const std::string& path, const std::string& folder) {
  const int lock = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0) fail_io("cannot write the run folder " + folder);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    fail(ErrorKind::usage, "{} is being written by another process ({}); wait for it, stop it, or give another --run",
         folder, first_line(path));
  }
  const std::string text = fmt::format("process {}\n", getpid());
  [[maybe_unused]] const bool noted = ftruncate(lock, 0) == 0 && write(lock, text.data(), text.size()) > 0;
  return lock;
}

}  // namespace

RunFolder::RunFolder(const std::string& path) : path_(path) {
  make_folder(path);
  lock_ = take_lock(this->path("run.lock"), path);
  for (const char* below : {"", "checkpoints", "samples", "tensorboard"}) remove_temporary_files(this->path(below));
  remove_halves(this->path("checkpoints"));
}

RunFolder::~RunFolder() { close(lock_); }

bool RunFolder::there() const {
  struct stat mine {
  }, found{};
  if (fstat(lock_, &mine) != 0 || stat(path("run.lock").c_str(), &found) != 0) return false;
  return mine.st_dev == found.st_dev && mine.st_ino == found.st_ino;
}

std::string RunFolder::path(const std::string& name) const { return name.empty() ? path_ : path_ + "/" + name; }

bool RunFolder::has_checkpoints() const { return !checkpoint_steps(path("checkpoints")).empty(); }

void RunFolder::log(const nlohmann::json& line) {
  const std::string file = path("log.jsonl"), text = line.dump() + "\n";
  std::error_code none;
  const auto size = fs::file_size(file, none);
  std::FILE* out = std::fopen(file.c_str(), "a");
  if (out == nullptr) fail_io("cannot write " + file);
  const bool ok = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (std::fclose(out) == 0 && ok) return;
  const int reason = errno;
  fs::resize_file(file, none ? 0 : size, none);  // half a line would spoil the next one
  errno = reason;
  fail_io("cannot write " + file);
}

void RunFolder::forget_log_after(int64_t step) {
  if (!fs::exists(path("log.jsonl"))) return;
  std::istringstream in(read_file(path("log.jsonl")));
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const auto json = try_parse_json(line);
    if (!json || step_of(*json) > step) continue;
    kept += line + "\n";
  }
  replace_file(path("log.jsonl"), kept);
}

}  // namespace convssm::run
