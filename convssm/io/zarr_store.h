// The files of a Zarr store by their keys, which are paths below its folder: "rain/.zarray", "rain/c/0/0". Keys are made of what the
// metadata says, so nothing outside of the folder is opened, whatever a key or a link in the folder says.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convssm/io/source.h"

namespace convssm::io {

class ZarrStore {
 public:
  // The store itself may be named by a link. Error(io) if there is no such folder, Error(data) if it is a file.
  explicit ZarrStore(std::string path);

  const std::string& path() const { return path_; }
  std::string file(std::string_view key) const;  // for people

  // Null if there is no such file; FormatError if it is a link out of the store.
  std::shared_ptr<const Source> open(const std::string& key) const;
  std::optional<std::string> text(const std::string& key) const;  // Error(data) above the limit of base/file_memory.h

  // Names of the folders in a folder, sorted, without links out of the store.
  std::vector<std::string> folders(const std::string& key) const;

 private:
  bool is_inside(const std::string& real) const;
  std::string path_, real_;
};

// "a/b" of "a" and "b", "b" of "" and "b".
std::string zarr_key(const std::string& folder, std::string_view name);

// Whether each part of "a/b" is a name, not "..", and none has control characters: Error messages show them.
bool is_zarr_key(std::string_view key);

}  // namespace convssm::io
