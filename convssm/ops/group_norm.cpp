// The work around the kernel: checks, autograd, threads. A thread takes whole frames, so means need no reduction across
// threads; gradients of weight and bias are summed per thread in double and added at the end. The statistics are kept
// for the backward, z is computed again: it is cheaper than its memory.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "convssm/ops/check.h"
#include "convssm/ops/device.h"
#include "convssm/ops/elementwise.h"
#include "convssm/ops/norm.h"
#include "convssm/ops/norm_kernels.h"

namespace convssm::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
GroupNormBackwardFrame<T> describe(const at::Tensor& x, int64_t groups, int64_t activation, double eps,
                                   const at::Tensor& weight, const at::Tensor& bias) {
  GroupNormBackwardFrame<T> f{};
  f.activation = static_cast<Activation>(activation);
  f.channels = x.size(1);
  f.pixels = x.numel() / (x.size(0) * x.size(1));
  f.groups = groups;
  f.eps = eps;
  f.weight = weight.data_ptr<T>();
  f.bias = bias.data_ptr<T>();
  return f;
}

template <typename T>
void at_frame(GroupNormFrame<T>& f, int64_t n, const at::Tensor& x, at::Tensor& out, at::Tensor& statistics) {
  f.x = x.data_ptr<T>() + n * f.pixels * f.channels;
  f.out = out.data_ptr<T>() + n * f.pixels * f.channels;
  f.mean = statistics.data_ptr<double>() + n * 2 * f.groups;
  f.rstd = f.mean + f.groups;
}

template <typename T>
void run_forward(const at::Tensor& x, int64_t groups, int64_t activation, double eps, const at::Tensor& weight,
                 const at::Tensor& bias, at::Tensor& out, at::Tensor& statistics) {
  at::parallel_for(0, x.size(0), 1, [&](int64_t n, int64_t end) {
    GroupNormFrame<T> f = describe<T>(x, groups, activation, eps, weight, bias);
    std::vector<T> scratch(4 * f.channels);
    f.scratch = scratch.data();
    for (; n < end; ++n) {
      at_frame(f, n, x, out, statistics);
      group_norm_frame(f);
    }
  });
}

// Gradients of weight and bias: [threads, 2, C], summed by the caller.
template <typename T>
void run_backward(const at::Tensor& x, const at::Tensor& g, int64_t groups, int64_t activation, double eps,
                  const at::Tensor& weight, const at::Tensor& bias, at::Tensor& out, at::Tensor& statistics,
                  at::Tensor& partial) {
  at::parallel_for(0, x.size(0), 1, [&](int64_t n, int64_t end) {
    auto f = describe<T>(x, groups, activation, eps, weight, bias);
    std::vector<T> scratch(4 * f.channels);
    std::vector<double> sums(2 * f.channels);
    f.scratch = scratch.data();
    f.sums = sums.data();
    f.grad_weight = partial.data_ptr<double>() + at::get_thread_num() * 2 * f.channels;
    f.grad_bias = f.grad_weight + f.channels;
    for (; n < end; ++n) {
      at_frame(f, n, x, out, statistics);
      f.g = g.data_ptr<T>() + n * f.pixels * f.channels;
      group_norm_backward_frame(f);
    }
  });
}

struct GroupNormFunction : torch::autograd::Function<GroupNormFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_in, const at::Tensor& weight,
                            const at::Tensor& bias, int64_t groups, int64_t activation, double eps) {
    const at::Tensor x = channels_together(x_in), w = weight.contiguous(), b = bias.contiguous();
    at::Tensor out = at::empty_like(x);
    at::Tensor statistics = at::empty({x.size(0), 2, groups}, x.options().dtype(at::kDouble));
    if (x.scalar_type() == at::kFloat) {
      run_forward<float>(x, groups, activation, eps, w, b, out, statistics);
    } else {
      run_forward<double>(x, groups, activation, eps, w, b, out, statistics);
    }
    ctx->saved_data["groups"] = groups;
    ctx->saved_data["activation"] = activation;
    ctx->saved_data["eps"] = eps;
    ctx->save_for_backward({x_in, weight, bias, statistics});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const int64_t groups = ctx->saved_data["groups"].toInt(), activation = ctx->saved_data["activation"].toInt();
    const double eps = ctx->saved_data["eps"].toDouble();
    if (at::GradMode::is_enabled()) {
      const auto plain = [=](const variable_list& in) {
        return group_norm_plain(in[0], groups, in[1], in[2], static_cast<Activation>(activation), eps);
      };
      const auto found = differentiable_gradients({saved[0], saved[1], saved[2]}, grads[0], plain);
      return {found[0], found[1], found[2], at::Tensor(), at::Tensor(), at::Tensor()};
    }
    const at::Tensor x = channels_together(saved[0]), g = channels_together(grads[0]);
    const at::Tensor w = saved[1].contiguous(), b = saved[2].contiguous();
    at::Tensor statistics = saved[3], out = at::empty_like(x);
    at::Tensor partial = at::zeros({at::get_num_threads(), 2, x.size(1)}, statistics.options());
    if (x.scalar_type() == at::kFloat) {
      run_backward<float>(x, g, groups, activation, eps, w, b, out, statistics, partial);
    } else {
      run_backward<double>(x, g, groups, activation, eps, w, b, out, statistics, partial);
    }
    const at::Tensor sums = partial.sum(0).to(x.scalar_type());
    return {out, sums[0], sums[1], at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias,
                      Activation activation, double eps) {
  require("group_norm", x.defined() && (x.dim() == 4 || x.dim() == 2) && x.numel() > 0,
          "x must be [N,C,H,W] or [N,C] with no size 0, got {}", x.defined() ? shape_text(x.sizes()) : "nothing");
  require("group_norm", groups > 0 && x.size(1) % groups == 0, "the number of groups must divide C = {}, got {}",
          x.size(1), groups);
  require_shape("group_norm", "weight", weight, {x.size(1)});
  require_shape("group_norm", "bias", bias, {x.size(1)});
  require_like("group_norm", "weight", weight, x);
  require_like("group_norm", "bias", bias, x);
  if (!has_kernels(x)) return group_norm_plain(x, groups, weight, bias, activation, eps);
  return GroupNormFunction::apply(x, weight, bias, groups, static_cast<int64_t>(activation), eps);
}

at::Tensor group_norm_plain(const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias,
                            Activation activation, double eps) {
  const at::Tensor grouped = x.reshape({x.size(0), groups, -1});
  const at::Tensor centred = grouped - grouped.mean(-1, true);
  const at::Tensor normal = (centred * (centred.square().mean(-1, true) + eps).rsqrt()).reshape(x.sizes());
  std::vector<int64_t> channels(x.dim(), 1);
  channels[1] = x.size(1);
  return activate_plain(normal * weight.reshape(channels) + bias.reshape(channels), activation);
}

}  // namespace convssm::ops
