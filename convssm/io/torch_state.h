// What the pickle of a PyTorch file says: which tensors there are and how each lies in its storage. Inside io/ only.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "convssm/io/pickle.h"
#include "convssm/io/torch_file.h"

namespace convssm::io {

struct TorchState {
  std::vector<std::string> names;  // in the order of the dict
  std::unordered_map<std::string, TorchTensorInfo> tensors;
};

// The names that a state dict's pickle may use.
extern const PickleRules torch_rules;

// FormatError unless the pickle is a dict of tensors or holds one, and every tensor lies inside its storage.
TorchState read_torch_state(const Pickle& pickle);

}  // namespace convssm::io
