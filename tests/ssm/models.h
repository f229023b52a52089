// Small ConvSSM models in float64 for the tests.
#pragma once

#include "convssm/ssm/conv_ssm.h"

namespace convssm::testing {

inline ssm::ConvSSMOptions small(int64_t kernel_a, ssm::Boundary boundary) {
  ssm::ConvSSMOptions options;
  options.features = 2;
  options.outputs = 3;
  options.state_size = 4;
  options.kernel_a = kernel_a;
  options.kernel_d = 1;
  options.boundary = boundary;
  return options;
}

inline ssm::ConvSSMOptions continuous(ssm::Discretization method, bool per_state, int64_t kernel_a = 1) {
  auto options = small(kernel_a, ssm::Boundary::zero);
  options.time = ssm::TimeDomain::continuous;
  options.discretization = method;
  options.step_per_state = per_state;
  options.dt_min = 0.1;
  options.dt_max = 1.0;
  return options;
}

inline ssm::ConvSSM make(const ssm::ConvSSMOptions& options, uint64_t seed = 1) {
  Stream stream(seed, "model");
  ssm::ConvSSM model(options, stream);
  model->to(at::kDouble);
  return model;
}

}  // namespace convssm::testing
