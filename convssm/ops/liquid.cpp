// Checks, threads and autograd around the kernels, as in pixel_steps.cpp.
#include "convssm/ops/liquid.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "convssm/ops/check.h"
#include "convssm/ops/device.h"
#include "convssm/ops/elementwise.h"
#include "convssm/ops/liquid_kernels.h"
#include "convssm/ops/pixel_rows.h"

namespace convssm::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
void run_liquid(const at::Tensor& a_bar, const at::Tensor& l, const at::Tensor& b, const at::Tensor& a) {
  const int64_t P = b.size(1) / 2, own = a_bar.dim() == 2 ? 2 * P : 0;
  for_pixel_rows(b, [&](int64_t frame, int64_t first, int64_t end) {
    liquid_rows(LiquidRows<T>{end - first, P, row_of<T>(a_bar, frame, own), row_of<T>(l, 0, 0),
                              row_of<T>(b, first, 2 * P), row_to<T>(a, first, 2 * P)});
  });
}

template <typename T>
void run_liquid_backward(const at::Tensor& a_bar, const at::Tensor& l, const at::Tensor& b, const at::Tensor& grad_a,
                         const at::Tensor& grad_b, const at::Tensor& sums) {
  const int64_t P = b.size(1) / 2, own = a_bar.dim() == 2 ? 2 * P : 0, each = pixels_of(b);
  at::parallel_for(0, b.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t frame = begin; frame < end; ++frame) {
      const int64_t row = frame * each * 2 * P;
      double* to = row_to<double>(sums, frame, 4 * P);
      liquid_backward_rows(LiquidBackwardRows<T>{each, P, row_of<T>(a_bar, frame, own), row_of<T>(l, 0, 0),
                                                 row_of<T>(b, row, 1), row_of<T>(grad_a, row, 1),
                                                 row_to<T>(grad_b, row, 1), to, to + 2 * P});
    }
  });
}

struct LiquidFunction : torch::autograd::Function<LiquidFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& a_in, const at::Tensor& l_in,
                            const at::Tensor& b_in) {
    const at::Tensor a_bar = a_in.resolve_conj().contiguous(), l = l_in.resolve_conj().contiguous();
    const at::Tensor b = channels_together(b_in), a = empty_pairs(b);
    b.scalar_type() == at::kFloat ? run_liquid<float>(a_bar, l, b, a) : run_liquid<double>(a_bar, l, b, a);
    ctx->save_for_backward({a_bar, l, b});
    return as_complex(a);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    require("liquid", !at::GradMode::is_enabled(), "has no second derivative; use liquid_coefficients_plain");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &a_bar = saved[0], &l = saved[1], &b = saved[2], grad_a = as_pairs(grads[0]);
    const int64_t P = l.size(0);
    const at::Tensor grad_b = at::empty_like(b), sums = at::zeros({b.size(0), 2, P, 2}, at::kDouble);
    b.scalar_type() == at::kFloat ? run_liquid_backward<float>(a_bar, l, b, grad_a, grad_b, sums)
                                  : run_liquid_backward<double>(a_bar, l, b, grad_a, grad_b, sums);
    const auto complex_sum = [&](const at::Tensor& x) {
      return at::view_as_complex(x.contiguous()).to(l.scalar_type());
    };
    const at::Tensor to_a = sums.select(1, 0);
    return {complex_sum(a_bar.dim() == 2 ? to_a : to_a.sum(0)), complex_sum(sums.select(1, 1).sum(0)), grad_b};
  }
};

void check_liquid(const at::Tensor& a_bar, const at::Tensor& l, const at::Tensor& b) {
  require_dims("liquid", "b", b, 4, "[N,2P,H,W]");
  require("liquid", b.size(1) % 2 == 0, "b must be [N,2P,H,W], got {}", shape_text(b.sizes()));
  const int64_t N = b.size(0), P = b.size(1) / 2;
  require_shape("liquid", "l", l, {P});
  const bool fits = a_bar.sizes() == at::IntArrayRef{P} || a_bar.sizes() == at::IntArrayRef{N, P};
  require("liquid", fits, "a_bar must be [P] or [N,P] with N = {}, P = {}, got {}", N, P, shape_text(a_bar.sizes()));
  const auto type = c10::toComplexType(b.scalar_type());
  require("liquid", a_bar.scalar_type() == type && l.scalar_type() == type,
          "a_bar and l must be complex of the precision of b, got {} and {} for {}", dtype_text(a_bar), dtype_text(l),
          dtype_text(b));
}

}  // namespace

at::Tensor liquid_coefficients(const at::Tensor& a_bar, const at::Tensor& l, const at::Tensor& b) {
  check_liquid(a_bar, l, b);
  return has_kernels(b) ? LiquidFunction::apply(a_bar, l, b) : liquid_coefficients_plain(a_bar, l, b);
}

at::Tensor liquid_coefficients_plain(const at::Tensor& a_bar, const at::Tensor& l, const at::Tensor& b) {
  check_liquid(a_bar, l, b);
  const int64_t P = l.size(0);
  const at::Tensor input = at::complex(b.narrow(1, 0, P), b.narrow(1, P, P));
  const at::Tensor v = a_bar.view({-1, P, 1, 1}) + l.view({P, 1, 1}) * input;
  return v / at::clamp_min(at::abs(v), 1);
}

}  // namespace convssm::ops
