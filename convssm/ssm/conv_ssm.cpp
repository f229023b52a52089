// B and C are applied to all frames at once; only A goes from frame to frame. A starts as a contraction, by a bound on
// its operator norm, so that a fresh model cannot explode over a long sequence; in continuous time the identity is
// subtracted, which makes it a decay.
#include "convssm/ssm/conv_ssm.h"

#include <ATen/ATen.h>

#include <vector>

#include "convssm/ops/check.h"
#include "convssm/ssm/initializers.h"

namespace convssm::ssm {
namespace {

using ops::require;

constexpr double initial_gain = 0.9;

void check_options(const ConvSSMOptions& o) {
  require("conv_ssm", o.features > 0, "features must be positive, got {}", o.features);
  require("conv_ssm", o.outputs >= 0, "outputs must be positive, or 0 for as many as features, got {}", o.outputs);
  require("conv_ssm", o.state_size > 0, "state_size must be positive, got {}", o.state_size);
  require("conv_ssm", o.kernel_a > 0 && o.kernel_a % 2 == 1, "kernel_a must be odd, got {}", o.kernel_a);
  require("conv_ssm", o.kernel_b > 0, "kernel_b must be positive, got {}", o.kernel_b);
  require("conv_ssm", o.kernel_c > 0, "kernel_c must be positive, got {}", o.kernel_c);
  require("conv_ssm", o.kernel_d >= 0, "kernel_d must be positive, or 0 for none, got {}", o.kernel_d);
  const bool exact = o.time == TimeDomain::continuous && o.discretization != Discretization::euler;
  require("conv_ssm", !exact || o.kernel_a == 1,
          "{} needs a pointwise state kernel, got kernel_a = {}; use euler, discrete time or kernel_a = 1",
          name(o.discretization), o.kernel_a);
}

at::Tensor square_kernel(int64_t out, int64_t in, int64_t width, double gain, Stream& stream) {
  return variance_scaling({out, in, width, width}, gain, in * width * width, true, stream);
}

// Scaled by the sum over taps of their spectral norms, a bound of the operator norm by the triangle inequality.
at::Tensor contraction(int64_t p, int64_t width, Stream& stream) {
  const auto kernel = normal({p, p, width, width}, 1.0, stream);
  const auto norms = at::linalg_matrix_norm(kernel.permute({2, 3, 0, 1}).contiguous(), /*ord=*/2);
  return kernel * (initial_gain / norms.sum());
}

at::Tensor minus_identity(at::Tensor kernel) {
  const int64_t centre = kernel.size(2) / 2;
  kernel.select(3, centre).select(2, centre).diagonal().sub_(1);
  return kernel;
}

}  // namespace

ConvSSMImpl::ConvSSMImpl(const ConvSSMOptions& options, Stream& stream) : options_(options) {
  check_options(options);
  auto& o = options_;
  if (o.outputs == 0) o.outputs = o.features;
  const bool continuous = o.time == TimeDomain::continuous;
  const auto k = contraction(o.state_size, o.kernel_a, stream);
  a = register_parameter("a", continuous ? minus_identity(k) : k);
  b = register_parameter("b", square_kernel(o.state_size, o.features, o.kernel_b, 2, stream));
  c = register_parameter("c", square_kernel(o.outputs, o.state_size, o.kernel_c, 2, stream));
  if (o.kernel_d > 0) d = register_parameter("d", square_kernel(o.outputs, o.features, o.kernel_d, 1, stream));
  if (!continuous) return;
  const int64_t steps = o.step_per_state ? o.state_size : 1;
  log_step = register_parameter("log_step", init_log_step(steps, o.dt_min, o.dt_max, stream).flatten());
}

Kernels ConvSSMImpl::kernels() const {
  for (const auto& item : named_parameters()) ops::require_finite("conv_ssm", item.key().c_str(), item.value());
  if (options_.time == TimeDomain::discrete) return {a, b};
  return discretize_kernels({a, b}, at::exp(log_step.to(at::kDouble)), options_.discretization);
}

std::pair<at::Tensor, at::Tensor> ConvSSMImpl::forward(const at::Tensor& u, const at::Tensor& x0,
                                                       Evaluation algorithm) {
  ops::require_dims("conv_ssm", "u", u, 5, "[L,B,U,H,W]");
  require("conv_ssm", u.size(2) == options_.features, "u must be [L,B,{},H,W], got {}", options_.features,
          ops::shape_text(u.sizes()));
  ops::require_like("conv_ssm", "u", u, a);
  const int64_t length = u.size(0);
  const auto boundary = options_.boundary;
  const auto [a_bar, b_bar] = kernels();

  const auto inputs = apply_kernel(b_bar, u.flatten(0, 1), boundary).unflatten(0, {length, u.size(1)}).unbind(0);
  std::vector<ScanElement> elements;
  for (const auto& input : inputs) elements.push_back({a_bar, input});
  if (x0.defined()) elements[0].b = elements[0].b + apply_kernel(a_bar, state_or_zeros(x0, u[0]), boundary);
  const bool parallel = algorithm == Evaluation::parallel;
  const auto x = parallel ? scan_tree(elements, boundary) : scan_sequential(elements, boundary);
  const auto y = output(at::cat(x, 0), u.flatten(0, 1));
  return {y.unflatten(0, {length, u.size(1)}), x.back()};
}

std::pair<at::Tensor, at::Tensor> ConvSSMImpl::step(const at::Tensor& u, const at::Tensor& x, const Kernels& kernels) {
  ops::require_dims("conv_ssm", "u", u, 4, "[B,U,H,W]");
  require("conv_ssm", u.size(1) == options_.features, "u must be [B,{},H,W], got {}", options_.features,
          ops::shape_text(u.sizes()));
  ops::require_like("conv_ssm", "u", u, a);
  const auto input = apply_kernel(kernels.b, u, options_.boundary);
  const auto next = apply_kernel(kernels.a, state_or_zeros(x, u), options_.boundary) + input;
  return {output(next, u), next};
}

at::Tensor ConvSSMImpl::state_or_zeros(const at::Tensor& x, const at::Tensor& frame) const {
  const std::vector<int64_t> shape{frame.size(0), options_.state_size, frame.size(2), frame.size(3)};
  if (!x.defined()) return at::zeros(shape, frame.options());
  ops::require_shape("conv_ssm", "the state", x, shape);
  ops::require_like("conv_ssm", "the state", x, a);
  return x;
}

at::Tensor ConvSSMImpl::output(const at::Tensor& x, const at::Tensor& u) const {
  const auto y = apply_kernel(c, x, options_.boundary);
  return d.defined() ? y + apply_kernel(d, u, options_.boundary) : y;
}

}  // namespace convssm::ssm
