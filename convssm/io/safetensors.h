// The safetensors format: 8 bytes of header length, a JSON header, then the tensors' bytes without gaps.
// A file is validated as a whole when it is opened, before any tensor is allocated; a tensor is read when asked for.
//   SafetensorsFile file("model.safetensors");   Array w = file.read("encoder.weight");
// Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

// Where a tensor is: [begin, end) counted from the end of the header.
struct TensorInfo {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

using Metadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<std::string> names;  // in the order of the header
  std::unordered_map<std::string, TensorInfo> tensors;
  Metadata metadata;
};

class SafetensorsFile {
 public:
  // Error(io) if the file cannot be read, FormatError if it is not valid.
  explicit SafetensorsFile(const std::string& path);
  explicit SafetensorsFile(std::shared_ptr<const Source> source);

  const std::vector<std::string>& names() const { return header_.names; }
  const Metadata& metadata() const { return header_.metadata; }
  bool contains(const std::string& name) const { return header_.tensors.contains(name); }

  // Error(data) that names the nearest name if there is no such tensor.
  const TensorInfo& info(const std::string& name) const;
  Array read(const std::string& name) const;

  // Reads the file once and compares it with the checksum that it holds (see Stamp). A file without one is not checked.
  void verify() const;

 private:
  std::shared_ptr<const Source> source_;
  SafetensorsHeader header_;
  uint64_t data_offset_ = 0;
};

// Whether a file says in its metadata, as `xxh64`, what all of its bytes hash to while the digits of this value are zeros.
enum class Stamp { none, checksum };

// Writes the tensors in the given order, whole or not at all. Error(usage) for names that are not unique or not UTF-8,
// and for c128, which the format does not have.
void write_safetensors(const std::string& path, std::span<const NamedArray> tensors, const Metadata& metadata = {},
                       Stamp stamp = Stamp::none);

// An array that is made when it is its turn to be written, and dropped after.
struct LazyArray {
  std::string name;
  ArrayInfo info;
  std::function<Array()> make;
};

// The same file in the memory of its largest tensor.
void stream_safetensors(const std::string& path, std::span<const LazyArray> tensors, const Metadata& metadata = {},
                        Stamp stamp = Stamp::none);

}  // namespace convssm::io
