// HDF5 files of arrays, as h5py writes them: each announced with its shape, then a few of its first rows at a time, in the memory of these.
//   Hdf5Writer out("clip.h5");   out.begin("video", DType::u8, {1200, 64, 64, 3});   out.write(rows) ...   out.close();
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convssm/io/array.h"

namespace convssm::io {

class Hdf5Writer {
 public:
  // Nothing is at the path before close(); without it there never is. Error(io) with the reason if the system refuses to write.
  explicit Hdf5Writer(const std::string& path);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  // The next array. Bools become u8, 16-bit floats are an Error(usage).
  void begin(const std::string& name, DType dtype, std::vector<int64_t> shape);

  // Its next rows: an array of its type and shape but for their number. Error(usage) for others and for too many.
  void write(const Array& rows);

  // Completes the file. An array of which fewer rows came is as long as those.
  void close();

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace convssm::io
