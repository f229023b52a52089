// Shapes and types are printed as Python shows them ([2,3,4], float32), since that is what users compare with. Sizes of
// 0 are refused here, so that no kernel has to think of them.
#include "convssm/ops/check.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/ScalarType.h>
#include <fmt/ranges.h>

#include <cmath>

namespace convssm::ops {

std::string shape_text(at::IntArrayRef sizes) { return fmt::format("[{}]", fmt::join(sizes, ",")); }

std::string dtype_text(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kComplexFloat:
      return "complex64";
    case at::kComplexDouble:
      return "complex128";
    case at::kHalf:
      return "float16";
    case at::kBool:
      return "bool";
    case at::kLong:
      return "int64";
    default:
      return c10::toString(x.scalar_type());
  }
}

void require_dims(const char* operation, const char* name, const at::Tensor& x, int64_t dims, const char* layout) {
  require(operation, x.defined(), "{} must be a tensor {}, got an undefined tensor", name, layout);
  require(operation, x.dim() == dims, "{} must be {}, got {}", name, layout, shape_text(x.sizes()));
  require(operation, x.numel() > 0, "{} must be {} with no size 0, got {}", name, layout, shape_text(x.sizes()));
}

void require_shape(const char* operation, const char* name, const at::Tensor& x, at::IntArrayRef expected) {
  require(operation, x.defined(), "{} must be {}, got an undefined tensor", name, shape_text(expected));
  require(operation, x.sizes() == expected, "{} must be {}, got {}", name, shape_text(expected), shape_text(x.sizes()));
}

void require_like(const char* operation, const char* name, const at::Tensor& x, const at::Tensor& like) {
  require(operation, x.scalar_type() == like.scalar_type(), "{} must be {}, got {}", name, dtype_text(like),
          dtype_text(x));
  require(operation, x.device() == like.device(), "{} must be on {}, got {}", name, like.device().str(),
          x.device().str());
}

void require_finite(const char* operation, const char* name, const at::Tensor& x) {
  // A sum is quick and finite for sane values; only a suspicious one is looked at value by value.
  const at::Tensor values = x.is_complex() ? at::view_as_real(x) : x;
  if (std::isfinite(values.sum().item<double>()) || at::isfinite(values).all().item<bool>()) return;
  fail(ErrorKind::numeric, "[{}] {} holds NaN or infinity; the parameters have diverged or the file is damaged",
       operation, name);
}

}  // namespace convssm::ops
