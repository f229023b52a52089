// The order of the arithmetic is part of the definition: (x/2 + 1/2) 255 in float32, then a cut to a whole number.
// Another order moves some levels by one.
#include "convssm/metrics/pixels.h"

#include <ATen/ATen.h>

#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

at::Tensor unit_range(const char* operation, const at::Tensor& x) {
  ops::require(operation, x.defined() && x.is_floating_point(), "x must be a float tensor in [-1,1], got {}",
               x.defined() ? ops::dtype_text(x) : "an undefined tensor");
  if (at::isnan(x).any().item<bool>()) {
    fail(ErrorKind::numeric, "[{}] x holds NaN; the model has diverged or the file is damaged", operation);
  }
  return x.detach().to(at::kFloat).clamp(-1, 1).mul_(0.5).add_(0.5);
}

}  // namespace

at::Tensor truncate_u8(const at::Tensor& x) { return unit_range("truncate_u8", x).mul_(255).to(at::kByte); }

at::Tensor truncated_f01(const at::Tensor& x) { return u8_to_f01(truncate_u8(x)); }

at::Tensor to_f01(const at::Tensor& x) { return unit_range("to_f01", x); }

at::Tensor u8_to_f01(const at::Tensor& pixels) {
  ops::require("u8_to_f01", pixels.defined() && pixels.scalar_type() == at::kByte, "pixels must be uint8, got {}",
               pixels.defined() ? ops::dtype_text(pixels) : "an undefined tensor");
  return pixels.to(at::kFloat).div_(255);
}

}  // namespace convssm::metrics
