// The scan in plain tensor operations: the naive loop that every other version is checked against, and the
// work-efficient tree. Both take complex or real arrays whose `a` broadcasts against a frame of b.
#include <ATen/ATen.h>

#include "convssm/ops/scan_problem.h"

namespace convssm::ops {
namespace {

// a as [La,Ba,1...,P] so that it broadcasts against b [L,B,...,P].
at::Tensor broadcast_coefficients(const at::Tensor& a, int64_t dims) {
  if (a.dim() == dims) return a;
  std::vector<int64_t> shape(dims, 1);
  shape.back() = a.size(-1);
  if (a.dim() >= 2) shape[0] = a.size(0);
  if (a.dim() == 3) shape[1] = a.size(1);
  return a.reshape(shape);
}

at::Tensor frame(const at::Tensor& a, int64_t k) { return a.size(0) == 1 ? a[0] : a[k]; }

at::Tensor every_second(const at::Tensor& x, int64_t start, int64_t end) { return x.slice(0, start, end, 2); }

// Pairs of frames are combined, the half-length scan is solved, and the even frames follow from it.
at::Tensor tree(const at::Tensor& a, const at::Tensor& b) {
  const int64_t L = b.size(0);
  if (L == 1) return b;
  const int64_t pairs = L / 2;
  const at::Tensor a_even = every_second(a, 0, 2 * pairs), a_odd = every_second(a, 1, 2 * pairs);
  const at::Tensor b_even = every_second(b, 0, 2 * pairs), b_odd = every_second(b, 1, 2 * pairs);
  const at::Tensor x_odd = tree(a_odd * a_even, a_odd * b_even + b_odd);

  const at::Tensor a_later = every_second(a, 2, L), b_later = every_second(b, 2, L);
  const at::Tensor x_later = a_later * x_odd.slice(0, 0, a_later.size(0)) + b_later;
  const at::Tensor x_even = at::cat({b.slice(0, 0, 1), x_later});
  const at::Tensor woven = at::stack({x_even.slice(0, 0, pairs), x_odd}, 1).flatten(0, 1);
  return L % 2 == 0 ? woven : at::cat({woven, x_even.slice(0, pairs)});
}

at::Tensor conjugate(const at::Tensor& x) { return x.is_complex() ? x.conj().resolve_conj() : x; }

// Sums mu * conj(x before) to the shape of a.
at::Tensor reduce_to(const at::Tensor& product, const at::Tensor& a) {
  const int64_t dims = product.dim();
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < dims - 1; ++axis) {
    const bool kept = a.dim() == dims || (axis == 0 && a.dim() >= 2) || (axis == 1 && a.dim() == 3);
    if (!kept) axes.push_back(axis);
  }
  return axes.empty() ? product : product.sum(axes);
}

at::Tensor as_numbers(ScanForm form, const at::Tensor& x) {
  return form == ScanForm::split && x.defined() ? join_halves(x) : x;
}

at::Tensor as_form(ScanForm form, const at::Tensor& x) { return form == ScanForm::split ? split_numbers(x) : x; }

}  // namespace

at::Tensor join_halves(const at::Tensor& x) {
  const int64_t P = x.size(-1) / 2;
  return at::complex(x.narrow(-1, 0, P).contiguous(), x.narrow(-1, P, P).contiguous());
}

at::Tensor split_numbers(const at::Tensor& x) { return at::cat({at::real(x), at::imag(x)}, -1); }

at::Tensor scan_naive(const at::Tensor& a, const at::Tensor& b, const at::Tensor& x0) {
  const at::Tensor coefficients = broadcast_coefficients(a, b.dim());
  std::vector<at::Tensor> xs;
  at::Tensor x = x0;
  for (int64_t k = 0; k < b.size(0); ++k) {
    x = x.defined() ? frame(coefficients, k) * x + b[k] : b[k];
    xs.push_back(x);
  }
  return at::stack(xs);
}

at::Tensor scan_tree(const at::Tensor& a, const at::Tensor& b, const at::Tensor& x0) {
  at::Tensor coefficients = broadcast_coefficients(a, b.dim());
  std::vector<int64_t> shape = coefficients.sizes().vec();
  shape[0] = b.size(0);
  coefficients = coefficients.expand(shape);
  if (!x0.defined()) return tree(coefficients, b);
  const at::Tensor first = (coefficients[0] * x0 + b[0]).unsqueeze(0);
  return tree(coefficients, at::cat({first, b.slice(0, 1)}));
}

ScanGradients scan_adjoint(const ScanProblem& p, const at::Tensor& a, const at::Tensor& x, const at::Tensor& x0,
                           const at::Tensor& g, const at::Tensor& g_last, const ScanOptions& options) {
  const at::Tensor states = as_numbers(p.form, x), start = as_numbers(p.form, x0);
  at::Tensor seed = g.defined() ? as_numbers(p.form, g) : at::zeros_like(states);
  if (g_last.defined()) {
    const at::Tensor last = (seed[-1] + as_numbers(p.form, g_last)).unsqueeze(0);
    seed = at::cat({seed.slice(0, 0, p.L - 1), last});
  }
  // mu_k = g_k + conj(a_{k+1}) mu_{k+1}: reversed in time, the coefficient of frame k is that of frame k+1.
  at::Tensor reversed = conjugate(a);
  if (p.a_per_step) reversed = at::cat({reversed.slice(0, 0, 1), reversed.slice(0, 1).flip(0)});
  const at::Tensor mu = scan(reversed, seed.flip(0), {}, options).x.flip(0);

  const at::Tensor zero = at::zeros_like(states[0]);
  const at::Tensor before = at::cat({(start.defined() ? start : zero).unsqueeze(0), states.slice(0, 0, p.L - 1)});
  ScanGradients grads;
  grads.a = reduce_to(mu * conjugate(before), a);
  grads.b = as_form(p.form, mu);
  if (start.defined()) grads.x0 = as_form(p.form, conjugate(frame(broadcast_coefficients(a, mu.dim()), 0)) * mu[0]);
  return grads;
}

}  // namespace convssm::ops
