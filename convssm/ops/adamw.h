// One step of AdamW in one pass over memory, float32 or float64. Decay is decoupled:
//   m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2,   p = (1 - lr decay) p - lr m_hat / (sqrt(v_hat) + eps)
// with m_hat = m / (1 - b1^t), v_hat = v / (1 - b2^t).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convssm::ops {

struct AdamWStep {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  int64_t updates = 1;  // t, this one included
};

// Changes p, m and v. All contiguous, of one shape, type and device; `scale` multiplies the gradient g before it is used.
void adamw_(at::Tensor& p, const at::Tensor& g, at::Tensor& m, at::Tensor& v, const AdamWStep& step, double scale = 1);

// The same in plain tensor operations: the reference.
void adamw_plain_(at::Tensor& p, const at::Tensor& g, at::Tensor& m, at::Tensor& v, const AdamWStep& step,
                  double scale = 1);

// The sum of the squares, in double; infinity or NaN if x holds such a value.
double square_sum(const at::Tensor& x);

}  // namespace convssm::ops
