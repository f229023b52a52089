// One autograd function for both forms: without y it is activation(x), with y the sum and the activation in one pass
// over memory. The backward needs the argument of the activation, so the sum is kept, and only if there will be a
// backward. A second derivative goes through the plain version, whose operations libtorch can differentiate again.
#include "convssm/ops/activation.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "convssm/ops/activation_kernels.h"
#include "convssm/ops/check.h"
#include "convssm/ops/device.h"
#include "convssm/ops/elementwise.h"
#include "convssm/ops/libtorch.h"

namespace convssm::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kActivationGrain = 16 * 1024;  // values per task

template <typename T>
void run_forward(Activation activation, const at::Tensor& x, const at::Tensor& y, at::Tensor& sum, at::Tensor& out) {
  const T* px = x.data_ptr<T>();
  const T* py = y.defined() ? y.data_ptr<T>() : nullptr;
  T* ps = sum.defined() ? sum.data_ptr<T>() : nullptr;
  T* po = out.data_ptr<T>();
  at::parallel_for(0, x.numel(), kActivationGrain, [&](int64_t i, int64_t end) {
    activate_loop({activation, px + i, py ? py + i : nullptr, ps ? ps + i : nullptr, po + i, end - i});
  });
}

template <typename T>
void run_backward(Activation activation, const at::Tensor& x, const at::Tensor& g, at::Tensor& out) {
  const T* px = x.data_ptr<T>();
  const T* pg = g.data_ptr<T>();
  T* po = out.data_ptr<T>();
  at::parallel_for(0, x.numel(), kActivationGrain, [&](int64_t i, int64_t end) {
    activate_backward_loop({activation, px + i, pg + i, po + i, end - i});
  });
}

// Without y: activation(x). The argument of the activation is what the backward needs.
struct ActivateFunction : torch::autograd::Function<ActivateFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_in, const OptionalTensor& y_in,
                            int64_t activation, bool keep) {
    const at::Tensor x = channels_together(x_in);
    const at::Tensor y = y_in ? channels_together(*y_in) : at::Tensor();
    at::Tensor sum = keep ? at::empty_like(x) : at::Tensor();
    at::Tensor out = at::empty_like(x);
    const auto kind = static_cast<Activation>(activation);
    if (x.scalar_type() == at::kFloat) {
      run_forward<float>(kind, x, y, sum, out);
    } else {
      run_forward<double>(kind, x, y, sum, out);
    }
    ctx->saved_data["activation"] = activation;
    ctx->saved_data["added"] = y.defined();
    ctx->save_for_backward({keep ? sum : x_in});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto kind = static_cast<Activation>(ctx->saved_data["activation"].toInt());
    const bool added = ctx->saved_data["added"].toBool();
    at::Tensor x = ctx->get_saved_variables()[0];
    if (at::GradMode::is_enabled() && !added) {
      const auto plain = [kind](const variable_list& inputs) { return activate_plain(inputs[0], kind); };
      return {differentiable_gradients({x}, grads[0], plain)[0], at::Tensor(), at::Tensor(), at::Tensor()};
    }
    require("add_activate", !at::GradMode::is_enabled(), "has no second derivative; use activate(x + y)");
    x = channels_together(x);
    const at::Tensor g = channels_together(grads[0]);
    at::Tensor out = at::empty_like(x);
    if (x.scalar_type() == at::kFloat) {
      run_backward<float>(kind, x, g, out);
    } else {
      run_backward<double>(kind, x, g, out);
    }
    return {out, added ? out : at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

const char* name(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
    case Activation::swish:
      return "swish";
    case Activation::elu:
      return "elu";
    case Activation::quick_gelu:
      return "quick_gelu";
    case Activation::gelu_erf:
      return "gelu_erf";
    case Activation::identity:
      break;
  }
  return "identity";
}

Activation parse_activation(const std::string& text) {
  for (const auto each : {Activation::identity, Activation::relu, Activation::gelu, Activation::swish, Activation::elu,
                          Activation::quick_gelu, Activation::gelu_erf}) {
    if (text == name(each)) return each;
  }
  fail(ErrorKind::usage, "[activation] expected identity, relu, gelu, swish, elu, quick_gelu or gelu_erf, got '{}'",
       text);
}

at::Tensor activate(const at::Tensor& x, Activation activation) {
  require("activate", x.defined() && x.is_floating_point(), "x must be a floating-point tensor");
  if (!has_kernels(x)) return activate_plain(x, activation);
  return ActivateFunction::apply(x, OptionalTensor(), static_cast<int64_t>(activation), false);
}

at::Tensor add_activate(const at::Tensor& x, const at::Tensor& y, Activation activation) {
  require("add_activate", x.defined() && x.is_floating_point(), "x must be a floating-point tensor");
  require_shape("add_activate", "y", y, x.sizes());
  require_like("add_activate", "y", y, x);
  if (!has_kernels(x)) return activate_plain(x + y, activation);
  return ActivateFunction::apply(x, OptionalTensor(y), static_cast<int64_t>(activation), gradients_wanted({x, y}));
}

at::Tensor activate_plain(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return at::relu(x);
    case Activation::gelu:
      return at::gelu(x, "tanh");
    case Activation::swish:
      return at::silu(x);
    case Activation::elu:
      return at::elu(x);
    case Activation::quick_gelu:
      return x * at::sigmoid(1.702 * x);
    case Activation::gelu_erf:
      return at::gelu(x);
    case Activation::identity:
      break;
  }
  return x;
}

}  // namespace convssm::ops
