// A diagonal state space of every channel along one axis of a frame, in both directions (S4D, as in S4ND):
//   y[i] = sum_{j <= i} k0[i-j] u[j] + sum_{j > i} k1[j-i-1] u[j],   k[m] = 2 Re sum_n C_n gamma_n lambda_bar_n^m.
// Both directions share Lambda and the step; the second begins at the neighbour, so that no pixel counts twice.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "convssm/base/random.h"

namespace convssm::nn {

// Parameters: Lambda_re, Lambda_im [C,n] (HiPPO-N), C [2,C,n,2] (complex normal of variance 1; the last axis is (re, im)),
// log_step [C] (log-uniform on [0.1, 1], for axes of some tens of pixels); n is half of the real states.
class AxisStatesImpl : public torch::nn::Module {
 public:
  AxisStatesImpl(int64_t channels, int64_t states, const Stream& stream);

  // u [L,M,C], L along the axis -> y [L,M,C], by one scan of both directions.
  at::Tensor forward(const at::Tensor& u);

  // What it is on an axis of this length: a depthwise kernel w [C, 2 length - 1] with
  // y[i] = sum_t w[t] u[i + t - (length - 1)].
  at::Tensor kernel(int64_t length) const;

 private:
  struct Discrete {
    at::Tensor a, c;  // complex [C,n] and [2,C,n]: k[m] = Re sum_n c_n a_n^m
  };
  Discrete discrete() const;

  at::Tensor lambda_re_, lambda_im_, c_, log_step_;
};
TORCH_MODULE(AxisStates);

}  // namespace convssm::nn
