// B is one and gamma goes into C, so the states are driven by the input itself. The reversed direction is a second set of
// lanes of the same scan, whose input runs backwards. The readout is a product of states with C and is counted as one.
#include "convssm/nn/axis_states.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/ops/check.h"
#include "convssm/ops/flop_meter.h"
#include "convssm/ops/scan.h"
#include "convssm/ssm/diagonal_states.h"
#include "convssm/ssm/hippo.h"
#include "convssm/ssm/initializers.h"

namespace convssm::nn {
namespace {

constexpr double kStepMin = 0.1, kStepMax = 1;

}  // namespace

AxisStatesImpl::AxisStatesImpl(int64_t channels, int64_t states, const Stream& stream) {
  ops::require("axis_states", states > 0 && states % 2 == 0, "axis_states must be positive and even, got {}", states);
  const ssm::Spectrum spectrum = ssm::hippo_spectrum(states, 1);
  const std::vector<int64_t> shape{channels, states / 2};
  Stream c = stream.split("C"), step = stream.split("log_step");
  lambda_re_ = register_parameter("Lambda_re", at::real(spectrum.lambda).to(at::kFloat).expand(shape).clone());
  lambda_im_ = register_parameter("Lambda_im", at::imag(spectrum.lambda).to(at::kFloat).expand(shape).clone());
  c_ = register_parameter("C", ssm::normal({2, channels, states / 2, 2}, std::sqrt(0.5), c));
  log_step_ = register_parameter("log_step", ssm::init_log_step(channels, kStepMin, kStepMax, step).squeeze(1));
}

AxisStatesImpl::Discrete AxisStatesImpl::discrete() const {
  const at::Tensor step = log_step_.unsqueeze(1).expand_as(lambda_re_).reshape({-1, 1});
  const auto d = ssm::discretize(ssm::DiagonalStates{lambda_re_.flatten(), lambda_im_.flatten(), step}, {});
  return {d.a.view_as(lambda_re_), 2 * at::view_as_complex(c_) * d.gamma.view_as(lambda_re_)};
}

at::Tensor AxisStatesImpl::forward(const at::Tensor& u) {
  const int64_t L = u.size(0), M = u.size(1), C = u.size(2), n = lambda_re_.size(1);
  ops::require("axis_states", C == lambda_re_.size(0), "u must be [L,M,{}], got {}", lambda_re_.size(0),
               ops::shape_text(u.sizes()));
  const Discrete d = discrete();
  // Channels of the scan: (re, im), direction, channel, state. Only the real parts are driven.
  const at::Tensor driven = at::stack({at::ones({n}, u.options()), at::zeros({n}, u.options())}).view({2, 1, 1, n});
  const at::Tensor both = at::stack({u, u.flip({0})}, 2);
  const at::Tensor b = both.view({L, M, 1, 2, C, 1}) * driven;
  const at::Tensor a = at::stack({d.a, d.a}).flatten();
  const at::Tensor x = ops::scan_(a, b.view({L, M, 4 * C * n})).x.view(b.sizes());
  const ops::CountedProduct counted(L * M * 2 * C, 2 * n, 1);
  const at::Tensor y = (x * at::stack({at::real(d.c), -at::imag(d.c)})).sum(at::IntArrayRef{2, 5});  // [L,M,2,C]
  const at::Tensor backward = y.select(2, 1).flip({0});
  return y.select(2, 0) + at::cat({backward.slice(0, 1), at::zeros({1, M, C}, u.options())});
}

at::Tensor AxisStatesImpl::kernel(int64_t length) const {
  const Discrete d = discrete();
  const at::Tensor a = d.a.to(at::kComplexDouble);
  at::Tensor power = d.c.to(at::kComplexDouble);  // c a^m
  std::vector<at::Tensor> taps;
  for (int64_t m = 0; m < length; ++m) {
    taps.push_back(at::real(power).sum(-1));
    power = power * a;
  }
  const at::Tensor k = at::stack(taps, -1);  // [2,C,length]
  return at::cat({k[0].flip({1}), k[1].slice(1, 0, length - 1)}, 1).to(lambda_re_.scalar_type());
}

}  // namespace convssm::nn
