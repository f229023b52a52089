// The same formulas as matrix functions. zoh takes one exponential of a block matrix twice the size instead of an
// inverse of A, which need not exist; bilinear solves one system for both results.
#include "convssm/ssm/discretize_kernels.h"

#include <ATen/ATen.h>

#include "convssm/ops/check.h"

namespace convssm::ssm {
namespace {

using ops::require;

struct Matrices {
  at::Tensor a;  // [P,P]
  at::Tensor b;  // [P,U*kb*kb]
};

// `m` = diag(delta) A, `b` = diag(delta) B.
Matrices zoh(const at::Tensor& m, const at::Tensor& b) {
  const int64_t p = m.size(0);
  const auto upper = at::cat({m, at::eye(p, m.options())}, 1);
  const auto exponential = at::linalg_matrix_exp(at::cat({upper, at::zeros({p, 2 * p}, m.options())}, 0));
  return {exponential.slice(0, 0, p).slice(1, 0, p), at::matmul(exponential.slice(0, 0, p).slice(1, p), b)};
}

Matrices bilinear(const at::Tensor& m, const at::Tensor& b) {
  const int64_t p = m.size(0);
  const auto identity = at::eye(p, m.options());
  const auto solved = at::linalg_solve(identity - 0.5 * m, at::cat({identity + 0.5 * m, b}, 1));
  return {solved.slice(1, 0, p), solved.slice(1, p)};
}

// I + M, with the identity at the centre of the kernel.
at::Tensor euler(const at::Tensor& m) {
  const int64_t p = m.size(0), half = m.size(2) / 2;
  const auto identity = at::eye(p, m.options()).view({p, p, 1, 1});
  return m + at::constant_pad_nd(identity, {half, half, half, half});
}

void check_arguments(const Kernels& continuous, const at::Tensor& delta, Discretization method) {
  const auto &a = continuous.a, &b = continuous.b;
  ops::require_dims("discretize", "a", a, 4, "[P,P,k,k]");
  ops::require_dims("discretize", "b", b, 4, "[P,U,k,k]");
  const int64_t p = a.size(0), width = a.size(2);
  ops::require_shape("discretize", "a", a, {p, p, width, width});
  require("discretize", width % 2 == 1, "a must have an odd width, got {}", width);
  require("discretize", b.size(0) == p, "b must be [{},U,k,k], got {}", p, ops::shape_text(b.sizes()));
  require("discretize", delta.dim() == 1 && (delta.size(0) == 1 || delta.size(0) == p),
          "delta must be [1] or [{}], got {}", p, ops::shape_text(delta.sizes()));
  require("discretize", width == 1 || method == Discretization::euler,
          "{} needs a pointwise (1x1) state kernel, got {}x{}: the exponential of a wider kernel is as large as the "
          "frame; use "
          "euler or kernel_a = 1",
          name(method), width, width);
}

}  // namespace

Kernels discretize_kernels(const Kernels& continuous, const at::Tensor& delta, Discretization method) {
  check_arguments(continuous, delta, method);
  check_delta(delta);
  const auto step = delta.to(at::kDouble).view({-1, 1, 1, 1});
  const auto m = step * continuous.a.to(at::kDouble);
  const auto b = step * continuous.b.to(at::kDouble);
  const auto dtype = continuous.a.scalar_type();
  if (method == Discretization::euler) return {euler(m).to(dtype), b.to(dtype)};
  const auto m_matrix = m.flatten(1), b_matrix = b.flatten(1);
  const auto bar = method == Discretization::zoh ? zoh(m_matrix, b_matrix) : bilinear(m_matrix, b_matrix);
  return {bar.a.reshape(m.sizes()).to(dtype), bar.b.reshape(b.sizes()).to(dtype)};
}

}  // namespace convssm::ssm
