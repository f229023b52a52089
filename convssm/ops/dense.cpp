// On frames a dense layer is a 1x1 convolution, which takes channels_last memory without a transpose. Complex scaling
// is done on the two real halves: the states are split, Re half then Im half, wherever they are stored.
#include "convssm/ops/dense.h"

#include <ATen/ATen.h>

#include "convssm/ops/check.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/flop_meter.h"

namespace convssm::ops {

at::Tensor dense(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  require("dense", x.defined() && (x.dim() == 2 || x.dim() == 4), "x must be [N,C] or [N,C,H,W], got {}",
          x.defined() ? shape_text(x.sizes()) : "an undefined tensor");
  require_dims("dense", "weight", weight, 2, "[O,C]");
  require("dense", weight.size(1) == x.size(1), "weight must be [O,{}], got {}", x.size(1), shape_text(weight.sizes()));
  require_like("dense", "weight", weight, x);
  require("dense", x.numel() > 0, "x must have no size 0, got {}", shape_text(x.sizes()));
  if (bias) {
    require_shape("dense", "bias", *bias, {weight.size(0)});
    require_like("dense", "bias", *bias, x);
  }
  if (x.dim() == 4) return ops::conv2d(x, weight.unsqueeze(-1).unsqueeze(-1), bias);
  const CountedProduct counted(x.size(0), x.size(1), weight.size(0));
  return at::linear(x, weight, bias);
}

at::Tensor scale_states(const at::Tensor& gamma, const at::Tensor& b) {
  require("scale_states", gamma.is_complex() && (gamma.dim() == 2 || gamma.dim() == 3),
          "gamma must be complex [L,P] or [L,B,P], got {} {}", dtype_text(gamma), shape_text(gamma.sizes()));
  const int64_t P = gamma.size(-1);
  require("scale_states", b.dim() >= 3 && b.size(2) == 2 * P, "b must be [L,B,{},...], got {}", 2 * P,
          shape_text(b.sizes()));
  at::Tensor g = gamma.dim() == 2 ? gamma.unsqueeze(1) : gamma;
  while (g.dim() < b.dim()) g = g.unsqueeze(-1);
  const at::Tensor gr = at::real(g), gi = at::imag(g);
  const at::Tensor br = b.narrow(2, 0, P), bi = b.narrow(2, P, P);
  return at::cat({gr * br - gi * bi, gr * bi + gi * br}, 2);
}

}  // namespace convssm::ops
