// The gradient of x is a convolution of g with the weights turned by 180 degrees and in and out exchanged, so it runs
// the forward with another packing. In training the weights change every step and are packed anew; only without
// gradients is the pack kept.
#include "convssm/ops/winograd_conv2d.h"

#include <ATen/ATen.h>

#include "convssm/ops/elementwise.h"
#include "convssm/ops/packed_weights.h"
#include "convssm/ops/winograd.h"

namespace convssm::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

WinogradShape shape_of(const at::Tensor& x, int64_t out) { return {x.size(0), x.size(2), x.size(3), x.size(1), out}; }

// x and the result channels_last.
at::Tensor run(const at::Tensor& x, const at::Tensor& packed, int64_t out, const float* bias) {
  at::Tensor y = at::empty({x.size(0), out, x.size(2), x.size(3)}, x.options(), at::MemoryFormat::ChannelsLast);
  winograd_forward(shape_of(x, out), x.data_ptr<float>(), packed.data_ptr<float>(), {.bias = bias},
                   y.data_ptr<float>());
  return y;
}

at::Tensor weight_gradient(const at::Tensor& x, const at::Tensor& g) {
  at::Tensor weight = at::empty({g.size(1), x.size(1), 3, 3}, x.options());
  winograd_weight_gradient(shape_of(x, g.size(1)), x.data_ptr<float>(), g.data_ptr<float>(), weight.data_ptr<float>());
  return weight;
}

// The sum over all pixels, as a product with ones.
at::Tensor bias_gradient(const at::Tensor& g) {
  const at::Tensor rows = g.permute({0, 2, 3, 1}).reshape({-1, g.size(1)});
  return at::mv(rows.t(), at::ones({rows.size(0)}, g.options()));
}

struct WinogradConv : torch::autograd::Function<WinogradConv> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_in, const at::Tensor& weight,
                            const OptionalTensor& bias, bool training) {
    const at::Tensor x = channels_together(x_in);
    if (training) forget_pack(weight);
    const at::Tensor packed = training ? pack_for_forward(weight) : kept_pack(weight);
    const at::Tensor b = bias ? bias->contiguous() : at::Tensor();
    if (training) {
      ctx->saved_data["bias"] = bias.has_value();
      ctx->save_for_backward({x_in, weight});
    }
    return run(x, packed, weight.size(0), bias ? b.data_ptr<float>() : nullptr);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const bool with_bias = ctx->saved_data["bias"].toBool();
    if (at::GradMode::is_enabled()) {
      const auto plain = [](const variable_list& in) { return at::conv2d(in[0], in[1], {}, 1, 1); };
      const auto found = differentiable_gradients(saved, grads[0], plain);
      return {found[0], found[1], with_bias ? grads[0].sum({0, 2, 3}) : at::Tensor(), at::Tensor()};
    }
    const at::Tensor g = channels_together(grads[0]), weight = saved[1];
    at::Tensor grad_x, grad_weight, grad_bias;
    if (saved[0].requires_grad()) grad_x = run(g, pack_for_input_gradient(weight), weight.size(1), nullptr);
    if (weight.requires_grad()) grad_weight = weight_gradient(channels_together(saved[0]), g);
    if (with_bias) grad_bias = bias_gradient(g);
    return {grad_x, grad_weight, grad_bias, at::Tensor()};
  }
};

}  // namespace

at::Tensor winograd_conv2d(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  const bool needed = x.requires_grad() || weight.requires_grad() || (bias && bias->requires_grad());
  return WinogradConv::apply(x, weight, bias, at::GradMode::is_enabled() && needed);
}

}  // namespace convssm::ops
