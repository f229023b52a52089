// Brings downloaded weights into the folder of metrics/weights.h, as safetensors. The files of others are read by
// restricted readers (io/torch_file.h, io/tf_bundle.h): nothing of them is ever run, every checksum is verified.
#pragma once

#include <cstdint>
#include <string>

#include "convssm/metrics/weights.h"

namespace convssm::metrics {

struct ImportedWeights {
  std::string path;
  size_t tensors = 0;
  uint64_t bytes = 0;
};

// `from`: for i3d the prefix of a TensorFlow checkpoint (or one of its files); otherwise a state dict, .pth in PyTorch's
// zip format or .safetensors, of the whole network or of its features. Error(data) if it is not the network it should
// be: nothing is written then.
ImportedWeights import_weights(const std::string& name, const std::string& from, const WeightFolder& folder);

}  // namespace convssm::metrics
