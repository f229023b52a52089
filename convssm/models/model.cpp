#include "convssm/models/model.h"

#include <ATen/ATen.h>

#include "convssm/base/error.h"

namespace convssm::models {

at::Tensor Model::forecasts(const at::Tensor&, const at::Tensor&, const ssm::Timing&) {
  fail(ErrorKind::usage, "[forecasts] this model does not make them at once; run it by start() and next()");
}

void Model::plan(nn::FramePlan&) { fail(ErrorKind::usage, "[plan] this model has none; run it by next()"); }

int64_t parameter_count(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& p : module.parameters()) count += p.numel();
  return count;
}

}  // namespace convssm::models
