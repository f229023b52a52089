// A key is resolved by realpath(3) before it is opened: links inside of the store are followed, those that lead out of it are not.
#include "convssm/io/zarr_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

// Nothing, with errno, if it does not lead to anything.
std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), std::free);
  return real ? std::optional<std::string>(real.get()) : std::nullopt;
}

}  // namespace

ZarrStore::ZarrStore(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  const auto real = real_path(path_);
  struct stat status {};
  if (!real || stat(real->c_str(), &status) != 0) fail_io(fmt::format("cannot open '{}'", path_));
  if (!S_ISDIR(status.st_mode)) {
    fail(ErrorKind::data, "{}: a Zarr store is a folder, this is a file; unpack it if it is an archive of one", path_);
  }
  real_ = *real;
}

std::string ZarrStore::file(std::string_view key) const { return path_ + "/" + std::string(key); }

bool ZarrStore::is_inside(const std::string& real) const {
  return real == real_ || real.starts_with(real_ == "/" ? real_ : real_ + "/");
}

std::shared_ptr<const Source> ZarrStore::open(const std::string& key) const {
  const std::string name = file(key);
  const auto real = real_path(name);
  if (!real) {
    struct stat status {};
    if (errno != ENOENT) fail_io(fmt::format("cannot open '{}'", name));
    if (lstat(name.c_str(), &status) != 0) return nullptr;
    throw FormatError(name, 0, "a link to nothing");
  }
  if (!is_inside(*real)) throw FormatError(name, 0, "a link out of the store, which is not followed");
  return open_source(name);
}

std::optional<std::string> ZarrStore::text(const std::string& key) const {
  const auto source = open(key);
  if (!source) return std::nullopt;
  require_file_memory(source->name(), "its content", source->size());
  std::string text(source->size(), '\0');
  source->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::vector<std::string> ZarrStore::folders(const std::string& key) const {
  std::vector<std::string> names;
  std::error_code error;
  const std::string folder = key.empty() ? path_ : file(key);
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (!at->is_directory(ignored)) continue;
    const auto real = real_path(at->path().string());
    if (real && is_inside(*real)) names.push_back(at->path().filename().string());
  }
  if (error) fail(ErrorKind::io, "cannot read the folder '{}': {}", folder, error.message());
  std::ranges::sort(names);
  return names;
}

std::string zarr_key(const std::string& folder, std::string_view name) {
  return folder.empty() ? std::string(name) : folder + "/" + std::string(name);
}

bool is_zarr_key(std::string_view key) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (key.size() >= PATH_MAX || std::ranges::any_of(key, is_control)) return false;
  for (size_t begin = 0;;) {
    const size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view part = key.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.size() > NAME_MAX) return false;
    if (end == key.size()) return true;
    begin = end + 1;
  }
}

}  // namespace convssm::io
