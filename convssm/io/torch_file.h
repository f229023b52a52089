// PyTorch's files (torch.save, .pth or .pt): a ZIP archive with a pickle that describes the tensors and a member per
// storage. Reading such a file in Python runs whatever code its pickle names; here nothing is ever executed: only a dict
// of tensors is accepted, any other name in the pickle is refused.
//   TorchFile file("weights.pth");   Array w = file.read("encoder.weight");
// Format: torch/serialization.py, torch/_utils.py and caffe2/serialize/inline_container.h of PyTorch
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/source.h"
#include "convssm/io/zip.h"

namespace convssm::io {

// A tensor is a view of a storage, which several tensors may share.
struct TorchTensorInfo {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements, none negative
  int64_t offset = 0;            // of the first element in the storage
  std::string storage;           // the key of the storage: archive/data/KEY
  int64_t storage_elements = 0;
};

class TorchFile {
 public:
  // Error(io) if the file cannot be read. FormatError if it is not valid or holds anything but a dict of names and
  // tensors or a dict with such a dict in it, as {"state_dict": {...}, "epoch": 3}: then its names are those inside.
  explicit TorchFile(const std::string& path);
  explicit TorchFile(std::shared_ptr<const Source> source);

  // Names of the tensors in the order of the dict. Values that are not tensors are left out.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return tensors_.contains(name); }

  // Error(data) that names the nearest name if there is no such tensor.
  const TorchTensorInfo& info(const std::string& name) const;
  // In C order, whatever the strides. The whole storage is read, and its checksum verified.
  Array read(const std::string& name) const;

 private:
  const ZipMember& storage_member(const TorchTensorInfo& tensor, const std::string& name) const;

  ZipFile zip_;
  std::string archive_;                              // the folder inside the archive
  std::unordered_map<std::string, size_t> members_;  // their places, by name
  std::vector<std::string> names_;
  std::unordered_map<std::string, TorchTensorInfo> tensors_;
};

}  // namespace convssm::io
