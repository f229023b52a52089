// Small tensors to arrays; apart from pixel_steps.cpp, because plans need it where there is no autograd.
#include "convssm/ops/kept_pixel_states.h"

#include <ATen/ATen.h>

namespace convssm::ops {

at::Tensor before_softplus(const at::Tensor& step) { return step + at::log(-at::expm1(-step)); }

at::Tensor kernel_step(const PixelStates& states) {
  return states.rule == StepRule::softplus ? before_softplus(states.step) : states.step;
}

StepConstants KeptPixelStates::constants() const {
  return {lambda_re.size(0),      rule, gain, lambda_re.data_ptr<double>(), lambda_im.data_ptr<double>(),
          step.data_ptr<double>()};
}

KeptPixelStates keep_states(const PixelStates& states) {
  const auto own = [](const at::Tensor& x) { return x.detach().to(at::kDouble).contiguous().clone(); };
  return {own(states.lambda_re), own(states.lambda_im), own(kernel_step(states)), states.rule, states.gain};
}

}  // namespace convssm::ops
