// Arrays written chunk by chunk, in C order, in the memory of one chunk: results that are longer than the memory.
//   NpyStream out("future.npy", DType::u8, {frames, height, width, 3});   out.write(frame);  out.close();
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "convssm/base/atomic_file.h"
#include "convssm/io/array.h"
#include "convssm/io/zip.h"

namespace convssm::io {

// Nothing is at the path before close(). Error(usage) if more or fewer bytes come than the shape says.
class NpyStream {
 public:
  NpyStream(const std::string& path, DType dtype, std::vector<int64_t> shape);

  void write(std::span<const std::byte> bytes);
  void write(std::span<const uint8_t> bytes) { write(std::as_bytes(bytes)); }
  void close();

  // Closes before all bytes came: the first length of the shape becomes `rows`, which must be what was written.
  void close_early(int64_t rows);

 private:
  ArrayInfo info_;
  uint64_t left_;
  size_t header_size_;
  AtomicFile file_;
  bool closed_ = false;
};

// Several arrays, one after the other: begin(), write() ..., end() each, then close().
class NpzStream {
 public:
  explicit NpzStream(const std::string& path) : zip_(path) {}

  void begin(const std::string& name, DType dtype, std::vector<int64_t> shape);
  void write(std::span<const std::byte> bytes);
  void write(std::span<const uint8_t> bytes) { write(std::as_bytes(bytes)); }
  void end();
  void close();

 private:
  ZipWriter zip_;
  std::unordered_set<std::string> names_;
  ArrayInfo info_;
  uint64_t left_ = 0;
  bool open_ = false;
  bool closed_ = false;
};

}  // namespace convssm::io
