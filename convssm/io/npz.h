// NumPy's .npz files: named arrays, each a .npy file in a ZIP archive, stored (np.savez) or deflated
// (np.savez_compressed).
//   NpzFile file("clips.npz");   Array frames = file.read("frames");
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/source.h"
#include "convssm/io/zip.h"

namespace convssm::io {

class NpzFile {
 public:
  // Error(io) if the file cannot be read, FormatError if it is not a valid archive.
  explicit NpzFile(const std::string& path);
  explicit NpzFile(std::shared_ptr<const Source> source);

  // Names of the arrays, without the ".npy", in the order of the archive. Members of other kinds are left out.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return index_.contains(name); }

  // Error(data) that names the nearest name if there is no such array.
  ArrayInfo info(const std::string& name) const;
  Array read(const std::string& name) const;

 private:
  std::unique_ptr<Reader> open(const std::string& name) const;

  ZipFile zip_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> index_;  // into the members of the archive
};

// Writes the arrays in the given order, whole or not at all. Error(usage) for names that are not unique and for bf16.
void write_npz(const std::string& path, std::span<const NamedArray> arrays, bool compress = false);

}  // namespace convssm::io
