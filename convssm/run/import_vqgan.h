// Trained VQ-GANs of the public layout (taming: encoder.conv_in.weight, encoder.down.0.block.0.norm1.weight, ...) as model
// files of this project: the sizes of the tensors say what network it is, and all but the frames' size follows from them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace convssm::run {

struct VqGanImport {
  std::string from;               // a state dict: .pth, .pt or .ckpt in PyTorch's zip format, or .safetensors
  std::string out;                // folder for model.safetensors and config.yaml
  int64_t height = 0, width = 0;  // of the frames it was trained on
};

struct ImportedVqGan {
  std::string path;                  // of the model file
  nlohmann::json model;              // the `model` section that was found
  size_t tensors = 0, left_out = 0;  // taken; of the training (loss.*), which are not
  std::string description;
};

// Error(data) names the first tensor that is missing, has another shape or is not known: nothing is written then.
// Error(usage) if `out` holds a model already.
ImportedVqGan import_vqgan(const VqGanImport& import);

}  // namespace convssm::run
