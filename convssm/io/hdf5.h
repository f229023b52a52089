// HDF5 files: arrays of numbers in folders ("episode_0/observations"), of which any chunk can be read. What a file refers to
// outside of itself is not followed. The format is parsed by libhdf5; it is silent, and its errors come as FormatError.
//   Hdf5Array frames("episodes.h5", "episode_0/observations");   Array some = frames.read(first, count);
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convssm/io/array.h"

namespace convssm::io {

// The arrays of numbers in the file, by their paths without the first slash, sorted as people number them. Others (text,
// compounds, links to other files) are left out.
std::vector<std::string> hdf5_names(const std::string& path);

class Hdf5Array {
 public:
  // Error(data) if there is no such array or it is not one of numbers; Error(io) and FormatError as of other readers.
  Hdf5Array(const std::string& path, const std::string& name);

  const ArrayInfo& info() const { return info_; }

  // Elements first .. first+count-1 in C order, as [count]. Of an array that is packed in chunks, the chunks that hold them
  // are unpacked. From any thread: libhdf5 does one thing at a time.
  Array read(uint64_t first, uint64_t count) const;

  // The box from `first` on of `count` elements along each dimension. Error(usage) if it is not inside of the array.
  Array read_box(std::span<const int64_t> first, std::span<const int64_t> count) const;

 private:
  struct Box;
  void fill(const std::vector<Box>& boxes, Array& array) const;

  struct Open;
  std::string path_, name_;
  ArrayInfo info_;
  std::shared_ptr<Open> open_;
};

}  // namespace convssm::io
