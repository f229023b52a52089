// Arrays are found by the ".npy" at the end of a member's name; what else the archive holds is left out. Headers are
// read when they are asked for, so opening an archive of large arrays costs only its directory.
#include "convssm/io/npz.h"

#include <unordered_set>

#include "convssm/base/error.h"
#include "convssm/io/npy.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr std::string_view suffix = ".npy";

}  // namespace

NpzFile::NpzFile(const std::string& path) : NpzFile(open_source(path)) {}

NpzFile::NpzFile(std::shared_ptr<const Source> source) : zip_(std::move(source)) {
  for (size_t i = 0; i < zip_.members().size(); ++i) {
    std::string name = zip_.members()[i].name;
    if (!name.ends_with(suffix)) continue;
    name.resize(name.size() - suffix.size());
    index_.emplace(name, i);
    names_.push_back(std::move(name));
  }
}

std::unique_ptr<Reader> NpzFile::open(const std::string& name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) fail_missing(zip_.name(), name, names_);
  return zip_.open(zip_.members()[found->second]);
}

ArrayInfo NpzFile::info(const std::string& name) const { return read_npy_info(*open(name)); }

Array NpzFile::read(const std::string& name) const { return read_npy(*open(name)); }

void write_npz(const std::string& path, std::span<const NamedArray> arrays, bool compress) {
  std::unordered_set<std::string_view> seen;
  for (const NamedArray& entry : arrays) {
    if (!seen.insert(entry.name).second) {
      fail(ErrorKind::usage, "[write_npz] two arrays are named {}", in_quotes(entry.name));
    }
  }
  ZipWriter zip(path);
  for (const auto& [name, array] : arrays) {
    const std::string header = npy_header(array);
    zip.add(name + std::string(suffix), std::as_bytes(std::span(header)), array.bytes(), compress);
  }
  zip.commit();
}

}  // namespace convssm::io
