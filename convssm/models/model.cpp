#include "convssm/models/model.h"

#include <ATen/ATen.h>

namespace convssm::models {

int64_t parameter_count(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& p : module.parameters()) count += p.numel();
  return count;
}

}  // namespace convssm::models
