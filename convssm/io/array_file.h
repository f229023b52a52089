// One array of a .npy, .npz or HDF5 file, of which any chunk can be read: recordings can be larger than the memory.
//   ArrayFile clips("clips.npz", "data");   Array some = clips.read(first, count);
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

class Hdf5Array;

// The arrays of the file: "" alone for a .npy file. Told by the first bytes, not by the name.
std::vector<std::string> array_names(const std::string& path);

class ArrayFile {
 public:
  // `name` is the array of an .npz or HDF5 file, "" for a .npy file. Error(data) that names the nearest if there is no such
  // array; Error(io) and FormatError as for read_npy.
  ArrayFile(const std::string& path, const std::string& name);

  const ArrayInfo& info() const { return info_; }

  // Whether a chunk costs as much as the whole: the array is compressed or in Fortran order.
  bool whole_only() const { return whole_only_; }

  Array read() const;  // with the checksum verified where there is one

  // The .npy file itself, from its header on. Error(usage) for an HDF5 file.
  std::unique_ptr<Reader> open() const;

  // Reads an array that chunks are read of to its end, block by block, and compares its checksum where there is one: a
  // chunk alone cannot be checked. What can only be read whole is checked by every read().
  void verify() const;

  // Elements first .. first+count-1 of the array in C order, as [count].
  Array read(uint64_t first, uint64_t count) const;

  // The box from `first` on of `count` elements along each dimension. Error(usage) if it is not inside of the array.
  Array read_box(std::span<const int64_t> first, std::span<const int64_t> count) const;

  // What read_box of so much costs: in bytes that could be read in the same time.
  uint64_t box_cost(std::span<const int64_t> count) const;

 private:
  std::string path_, name_;
  std::shared_ptr<const Source> source_;
  std::shared_ptr<const Hdf5Array> hdf5_;  // null: another format
  ArrayInfo info_;
  bool whole_only_ = false, big_endian_ = false;
  uint64_t data_offset_ = 0;  // of the first element in the file, unless whole_only_
};

}  // namespace convssm::io
