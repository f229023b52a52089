// TensorFlow's checkpoints ("V2", tensor bundle): PREFIX.index is a sorted table of names and places, the tensors' bytes
// are in PREFIX.data-00000-of-00001. Read without TensorFlow; the index is validated as a whole against the size of the
// data when it is opened, and every tensor's checksum is verified when it is read.
//   TfBundle bundle("i3d/model.ckpt");   Array w = bundle.read("RGB/inception_i3d/Logits/w");
// Format: tensorflow/core/util/tensor_bundle/tensor_bundle.h, tensorflow/core/protobuf/tensor_bundle.proto
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

// Where a tensor is in the data file.
struct TfTensorInfo {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  uint64_t offset = 0;
  uint64_t size = 0;        // in bytes
  uint32_t masked_crc = 0;  // CRC-32C of the bytes, masked as TensorFlow stores it
};

class TfBundle {
 public:
  // Opens PREFIX.index and PREFIX.data-00000-of-00001. Error(io) that names the file that cannot be read, FormatError
  // if one is not valid or the data is too short; checkpoints of several shards or of a big-endian machine are refused.
  explicit TfBundle(const std::string& prefix);
  TfBundle(std::shared_ptr<const Source> index, std::shared_ptr<const Source> data);

  // The tensors that can be read, in the order of their names: those of float, double, int32 and int64.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return tensors_.contains(name); }

  // The other entries, each with the reason: texts such as _CHECKPOINTABLE_OBJECT_GRAPH, tensors in slices.
  const std::map<std::string, std::string>& refused() const { return refused_; }

  // Error(data) with the reason for a refused tensor, or with the nearest name if there is no such tensor.
  const TfTensorInfo& info(const std::string& name) const;
  Array read(const std::string& name) const;

 private:
  void add_entry(const std::string& name, std::span<const std::byte> value, uint64_t offset);

  std::shared_ptr<const Source> index_;
  std::shared_ptr<const Source> data_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, TfTensorInfo> tensors_;
  std::map<std::string, std::string> refused_;
};

}  // namespace convssm::io
