// B is one and gamma goes into C, so the states are driven by the input itself. The reversed direction is a second set of
// lanes of the same scan, whose input runs backwards. Lanes are ordered (re, im), state, direction, channel: channels lie
// together, and the readout takes one state after the other without a product as large as all of them. It is counted as a
// product with C.
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
  const auto by_state = [](const at::Tensor& x) { return x.permute({2, 0, 1}).flatten(1); };  // [2,C,n] -> [n,2C]
  const at::Tensor both = at::cat({u, u.flip({0})}, 2).unsqueeze(2).expand({L, M, n, 2 * C});
  const at::Tensor b = at::cat({both, at::zeros({1, 1, 1, 1}, u.options()).expand_as(both)}, 2).flatten(2);
  const at::Tensor x = ops::scan_(by_state(at::stack({d.a, d.a})).flatten(), b).x;
  const at::Tensor c = by_state(d.c), weights = at::cat({at::real(c), -at::imag(c)});  // [2n,2C]
  const ops::CountedProduct counted(L * M * 2 * C, 2 * n, 1);
  const std::vector<at::Tensor> states = x.view({L, M, 2 * n, 2 * C}).unbind(2);
  at::Tensor y = states[0] * weights[0];
  for (int64_t j = 1; j < 2 * n; ++j) y = at::addcmul(y, states[j], weights[j]);
  const at::Tensor ahead = y.narrow(2, 0, C), back = y.narrow(2, C, C).flip({0});
  return ahead + at::cat({back.slice(0, 1), at::zeros({1, M, C}, u.options())});
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
