// The work around the kernel: checks, autograd, threads. Threads take runs of pixels, which are independent; gradients
// of weight and bias are summed per thread in double and added at the end. The fused sum x + y is kept for the backward
// only when one will come.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "convssm/ops/check.h"
#include "convssm/ops/device.h"
#include "convssm/ops/elementwise.h"
#include "convssm/ops/libtorch.h"
#include "convssm/ops/norm.h"
#include "convssm/ops/norm_kernels.h"

namespace convssm::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kLayerNormRows = 64;

template <typename T>
void run_forward(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight, const at::Tensor& bias,
                 at::Tensor& sum, at::Tensor& out) {
  const int64_t C = x.size(1);
  at::parallel_for(0, x.numel() / C, kLayerNormRows, [&](int64_t first, int64_t end) {
    LayerNormRows<T> rows{end - first,
                          C,
                          kNormEps,
                          x.data_ptr<T>() + first * C,
                          nullptr,
                          weight.data_ptr<T>(),
                          bias.data_ptr<T>(),
                          nullptr,
                          out.data_ptr<T>() + first * C};
    if (y.defined()) rows.y = y.data_ptr<T>() + first * C;
    if (sum.defined()) rows.sum = sum.data_ptr<T>() + first * C;
    layer_norm_rows(rows);
  });
}

// Gradients of weight and bias: [threads, 2, C], summed by the caller.
template <typename T>
void run_backward(const at::Tensor& x, const at::Tensor& g, const at::Tensor& weight, at::Tensor& out,
                  at::Tensor& partial) {
  const int64_t C = x.size(1);
  at::parallel_for(0, x.numel() / C, kLayerNormRows, [&](int64_t first, int64_t end) {
    std::vector<T> scratch(2 * C);
    double* grad_weight = partial.data_ptr<double>() + at::get_thread_num() * 2 * C;
    layer_norm_backward_rows({end - first, C, kNormEps, x.data_ptr<T>() + first * C, g.data_ptr<T>() + first * C,
                              weight.data_ptr<T>(), out.data_ptr<T>() + first * C, scratch.data(), grad_weight,
                              grad_weight + C});
  });
}

// Without y: LayerNorm(x). The sum is what the backward needs, kept if there will be one; statistics are found again, a
// row at a time.
struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_in, const OptionalTensor& y_in,
                            const at::Tensor& weight, const at::Tensor& bias, bool keep) {
    const at::Tensor x = channels_together(x_in), w = weight.contiguous(), b = bias.contiguous();
    const at::Tensor y = y_in ? channels_together(*y_in) : at::Tensor();
    at::Tensor sum = keep ? at::empty_like(x) : at::Tensor();
    at::Tensor out = at::empty_like(x);
    if (x.scalar_type() == at::kFloat) {
      run_forward<float>(x, y, w, b, sum, out);
    } else {
      run_forward<double>(x, y, w, b, sum, out);
    }
    ctx->saved_data["added"] = y.defined();
    ctx->save_for_backward({keep ? sum : x_in, weight, bias});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const bool added = ctx->saved_data["added"].toBool();
    if (at::GradMode::is_enabled()) {
      require("add_layer_norm", !added, "has no second derivative; use layer_norm(x + y)");
      const auto plain = [](const variable_list& in) { return layer_norm_plain(in[0], in[1], in[2]); };
      const auto found = differentiable_gradients(saved, grads[0], plain);
      return {found[0], at::Tensor(), found[1], found[2], at::Tensor()};
    }
    const at::Tensor x = channels_together(saved[0]), g = channels_together(grads[0]), w = saved[1].contiguous();
    at::Tensor out = at::empty_like(x);
    at::Tensor partial = at::zeros({at::get_num_threads(), 2, x.size(1)}, x.options().dtype(at::kDouble));
    if (x.scalar_type() == at::kFloat) {
      run_backward<float>(x, g, w, out, partial);
    } else {
      run_backward<double>(x, g, w, out, partial);
    }
    const at::Tensor sums = partial.sum(0).to(x.scalar_type());
    return {out, added ? out : at::Tensor(), sums[0], sums[1], at::Tensor()};
  }
};

void check(const char* operation, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  require(operation, x.defined() && (x.dim() == 4 || x.dim() == 2) && x.numel() > 0,
          "x must be [N,C,H,W] or [N,C] with no size 0, got {}", x.defined() ? shape_text(x.sizes()) : "nothing");
  require_shape(operation, "weight", weight, {x.size(1)});
  require_shape(operation, "bias", bias, {x.size(1)});
  require_like(operation, "weight", weight, x);
  require_like(operation, "bias", bias, x);
}

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  check("layer_norm", x, weight, bias);
  if (!has_kernels(x)) return layer_norm_plain(x, weight, bias);
  return LayerNormFunction::apply(x, OptionalTensor(), weight, bias, false);
}

at::Tensor add_layer_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight, const at::Tensor& bias) {
  check("add_layer_norm", x, weight, bias);
  require_shape("add_layer_norm", "y", y, x.sizes());
  require_like("add_layer_norm", "y", y, x);
  if (!has_kernels(x)) return layer_norm_plain(x + y, weight, bias);
  const bool keep = gradients_wanted({x, y, weight, bias});
  return LayerNormFunction::apply(x, OptionalTensor(y), weight, bias, keep);
}

at::Tensor layer_norm_plain(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor centred = x - x.mean(1, true);
  const at::Tensor normal = centred * (centred.square().mean(1, true) + kNormEps).rsqrt();
  std::vector<int64_t> channels(x.dim(), 1);
  channels[1] = x.size(1);
  return normal * weight.reshape(channels) + bias.reshape(channels);
}

}  // namespace convssm::ops
