// The centred features take the place of their covariance's root: any A with A^T A = S will do, and A is at hand. A set
// of more rows than features is first reduced to its triangular factor, which keeps the singular values.
#include "convssm/metrics/frechet.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

struct Moments {
  at::Tensor mean;
  at::Tensor root;  // [min(n,d),d], root^T root is the covariance
};

void check(const char* name, const at::Tensor& x) {
  ops::require_dims("frechet_distance", name, x, 2, "[n,d]");
  ops::require("frechet_distance", x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble,
               "{} must be float32 or float64, got {}", name, ops::dtype_text(x));
  ops::require("frechet_distance", x.size(0) >= 2, "{} must have at least 2 rows for a covariance, got {}", name,
               ops::shape_text(x.sizes()));
  if (!at::isfinite(x).all().item<bool>()) {
    fail(ErrorKind::numeric, "[frechet_distance] {} must be finite, got NaN or infinity", name);
  }
}

Moments moments(const at::Tensor& x) {
  const at::Tensor values = x.detach().cpu().to(at::kDouble);
  Moments out{values.mean(0), {}};
  out.root = (values - out.mean) / std::sqrt(static_cast<double>(x.size(0) - 1));
  // A = Q R with orthonormal Q: the singular values of A B^T are those of R B^T, and R is only [d,d].
  if (x.size(0) > x.size(1)) out.root = std::get<1>(at::linalg_qr(out.root, "r"));
  return out;
}

}  // namespace

double frechet_distance(const at::Tensor& x, const at::Tensor& y) {
  check("x", x);
  check("y", y);
  ops::require("frechet_distance", x.size(1) == y.size(1), "y must be [m,{}] as x is {}, got {}", x.size(1),
               ops::shape_text(x.sizes()), ops::shape_text(y.sizes()));
  const Moments a = moments(x), b = moments(y);
  const at::Tensor overlap = at::linalg_svdvals(at::mm(a.root, b.root.t())).sum();
  const at::Tensor spread = a.root.square().sum() + b.root.square().sum();
  const double distance = ((a.mean - b.mean).square().sum() + spread - 2 * overlap).item<double>();
  return std::max(distance, 0.0);
}

}  // namespace convssm::metrics
