// gamma is folded into B, and the factor 2 and the sign of Re(C x) into C, so a layer is two real convolutions around
// one scan; the complex state is 2P real channels. Without gradients the folded kernels are kept until a parameter's
// version moves: a step of generation then only convolves.
#include "convssm/cores/convs5_ssm.h"

#include <ATen/ATen.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/dense.h"
#include "convssm/ops/scan.h"
#include "convssm/ssm/initializers.h"
#include "convssm/ssm/ring_states.h"

namespace convssm::cores {
namespace {

at::Tensor as_complex_state(const at::Tensor& x0) {
  const int64_t P = x0.size(0) / 2;
  return at::complex(x0.narrow(0, 0, P), x0.narrow(0, P, P));
}

// fresh x0 for the split states of all frames: fresh complex [L,P] or [L,B,P], x0 [2P] -> [L,B or 1,2P,1,1].
at::Tensor restarted(const at::Tensor& fresh, const at::Tensor& x0) {
  const at::Tensor x = fresh * as_complex_state(x0);
  const at::Tensor halves = at::cat({at::real(x), at::imag(x)}, -1);
  return (halves.dim() == 2 ? halves.unsqueeze(1) : halves).unsqueeze(-1).unsqueeze(-1);
}

// As ssm::forget_states, for coefficients a [L,B,P,H,W] of every pixel and a first state x0 [2P], or none.
void forget_states(ops::PixelCoefficients& c, const at::Tensor& resets, const at::Tensor& x0) {
  if (!resets.defined()) return;
  const int64_t L = c.a.size(0);
  const at::Tensor forgotten = resets.to(at::kBool).view({L, resets.dim() == 2 ? c.a.size(1) : 1, 1, 1, 1});
  const at::Tensor zero = at::zeros({}, c.a.options());
  if (x0.defined()) {
    const at::Tensor first = as_complex_state(x0).view({-1, 1, 1});
    const at::Tensor fresh = at::where(forgotten, c.a * first, zero);
    c.b = c.b + at::cat({at::real(fresh), at::imag(fresh)}, 2);
  }
  c.a = at::where(forgotten, zero, c.a);
}

}  // namespace

ConvS5SSMImpl::ConvS5SSMImpl(const ConvS5Options& options, const Stream& stream) : options_(options) {
  const ssm::Spectrum spectrum = register_states(stream);
  const int64_t P = spectrum.lambda.size(0);
  Stream b = stream.split("B"), c = stream.split("C"), step = stream.split("log_step");
  b_tilde_ = register_parameter("B", ssm::init_conv_b(spectrum, options.features, options.kernel_b, b));
  c_tilde_ = register_parameter("C", ssm::init_conv_c(spectrum, options.features, options.kernel_c, c));
  if (options.init != StateInit::lru) {
    log_step_ = register_parameter("log_step", ssm::init_log_step(P, options.dt_min, options.dt_max, step));
  }
  if (options.learned_state) x0_ = register_parameter("x0", at::zeros({2 * P}));
  dynamics_ = make_dynamics(options.dynamics, {options.features, P, options.kernel_b});
  if (dynamics_) register_module("dynamics", dynamics_);
}

// The eigenvalues; their coordinates are what B and C begin in.
ssm::Spectrum ConvS5SSMImpl::register_states(const Stream& stream) {
  const ConvS5Options& o = options_;
  Stream own = stream.split("A");
  if (o.init == StateInit::lru) {
    const ssm::RingStates ring = ssm::init_ring(o.state_size / 2, {o.r_min, o.r_max, o.max_phase}, own);
    nu_ = register_parameter("nu", ring.nu);
    theta_ = register_parameter("theta", ring.theta);
    return ssm::ring_spectrum(ring);
  }
  const ssm::Spectrum spectrum = o.init == StateInit::hippo ? ssm::hippo_spectrum(o.state_size, o.blocks)
                                                            : ssm::gaussian_spectrum(o.state_size, own);
  lambda_re_ = register_parameter("Lambda_re", at::real(spectrum.lambda).to(at::kFloat));
  lambda_im_ = register_parameter("Lambda_im", at::imag(spectrum.lambda).to(at::kFloat));
  return spectrum;
}

ssm::DiscreteStates ConvS5SSMImpl::discrete(const Timing& timing) const {
  if (options_.init == StateInit::lru) return ssm::discretize(ssm::RingStates{nu_, theta_}, timing);
  return ssm::discretize(
      ssm::DiagonalStates{lambda_re_, lambda_im_, log_step_, options_.clip_eigs, options_.discretization}, timing);
}

// z = (re + i im) step, of which a_bar is the exponential.
ops::PixelStates ConvS5SSMImpl::rates() const {
  if (options_.init == StateInit::lru) {
    const at::Tensor decay = nu_.to(at::kDouble).exp();
    return {-decay, theta_.to(at::kDouble).exp(), at::ones_like(decay), {}, ops::GainRule::ring};
  }
  return {ssm::clip_eigenvalues(lambda_re_.to(at::kDouble), options_.clip_eigs), lambda_im_.to(at::kDouble),
          log_step_.to(at::kDouble).exp().squeeze(-1)};
}

// With a constant step gamma is folded into B; with steps that vary it scales the effective inputs instead.
ConvS5SSMImpl::Kernels ConvS5SSMImpl::fold(const Timing& timing) const {
  const ssm::DiscreteStates states_now = discrete(timing);
  Kernels kernels{states_now.a, states_now.gamma, states_now.fresh, {}, {}};
  const int64_t P = states(), k = options_.kernel_b;
  at::Tensor b = at::view_as_complex(b_tilde_).view({P, options_.features, k, k});
  const bool own_gamma = dynamics_ && dynamics_->applies_gamma();
  if (!timing.dt.defined() && !own_gamma) b = b * kernels.gamma.view({P, 1, 1, 1});
  kernels.b = at::cat({at::real(b), at::imag(b)}, 0);
  const at::Tensor c = c_tilde_.permute({4, 3, 2, 0, 1});  // (re,im), U, P, kh, kw
  kernels.c = at::cat({2 * c[0], -2 * c[1]}, 1);
  return kernels;
}

const ConvS5SSMImpl::Kernels& ConvS5SSMImpl::folded(double step_rescale) {
  std::vector<nn::ParameterVersion> now;
  for (const auto& p : parameters(false)) now.push_back(nn::version_of(p));
  if (now != kept_for_ || step_rescale != kept_rescale_) {
    kept_ = fold({{}, {}, step_rescale});
    kept_for_ = std::move(now);
    kept_rescale_ = step_rescale;
  }
  return kept_;
}

void ConvS5SSMImpl::train(bool on) {
  kept_for_.clear();
  Module::train(on);
}

at::Tensor ConvS5SSMImpl::first_state(const at::Tensor& x0, const at::Tensor& bu) const {
  if (x0.defined() || !x0_.defined()) return x0;
  return x0_.view({1, -1, 1, 1}).expand({bu.size(1), -1, bu.size(3), bu.size(4)});
}

std::pair<at::Tensor, at::Tensor> ConvS5SSMImpl::forward(const at::Tensor& u, int64_t L, const at::Tensor& x0,
                                                         const Timing& timing) {
  if (at::GradMode::is_enabled()) kept_for_.clear();
  if (dynamics_) return varying(u, L, x0, timing);
  const bool keep = !timing.varies() && !at::GradMode::is_enabled();
  const Kernels kernels = keep ? folded(timing.step_rescale) : fold(timing);
  at::Tensor bu = ops::conv2d(u, kernels.b).unflatten(0, {L, u.size(0) / L});
  if (timing.dt.defined()) bu = ops::scale_states(kernels.gamma, bu);
  if (x0_.defined() && kernels.fresh.defined()) bu = bu + restarted(kernels.fresh, x0_);
  const ops::ScanResult scan = ops::scan_frames_(kernels.a, bu, if_defined(first_state(x0, bu)));
  return {ops::conv2d(scan.x.flatten(0, 1), kernels.c), scan.last};
}

LayerStates ConvS5SSMImpl::layer_states(const Kernels& kernels, const Timing& timing, int64_t L, int64_t B) const {
  LayerStates states{rates(), {}, kernels.a};
  at::Tensor times = timing.dt;
  if (times.defined()) {
    if (times.dim() == 1) times = times.unsqueeze(1);
    states.times = (times.to(at::kDouble) * timing.step_rescale).expand({L, B}).reshape({-1});
    const at::Tensor a = kernels.a.dim() == 2 ? kernels.a.unsqueeze(1) : kernels.a;
    states.a = a.expand({L, B, -1}).reshape({L * B, -1});
  } else if (timing.step_rescale != 1) {
    states.times = at::full({L * B}, timing.step_rescale, kernels.b.options().dtype(at::kDouble));
  }
  return states;
}

// With coefficients of every pixel. What resets do to them is done here, not in the discretization.
std::pair<at::Tensor, at::Tensor> ConvS5SSMImpl::varying(const at::Tensor& u, int64_t L, const at::Tensor& x0,
                                                         const Timing& timing) {
  const Timing intervals{timing.dt, {}, timing.step_rescale};
  const bool keep = !intervals.varies() && !at::GradMode::is_enabled();
  const Kernels kernels = keep ? folded(timing.step_rescale) : fold(intervals);
  const int64_t B = u.size(0) / L;
  at::Tensor bu = ops::conv2d(u, kernels.b);
  if (timing.dt.defined() && !dynamics_->applies_gamma()) {
    bu = ops::scale_states(kernels.gamma, bu.unflatten(0, {L, B})).flatten(0, 1);
  }
  const ops::PixelCoefficients varied = dynamics_->forward(u, bu, layer_states(kernels, timing, L, B));
  ops::PixelCoefficients frames{varied.a.unflatten(0, {L, B}), varied.b.unflatten(0, {L, B})};
  forget_states(frames, timing.resets, x0_);
  const ops::ScanResult scan = ops::scan_frames_(frames.a, frames.b, if_defined(first_state(x0, frames.b)));
  return {ops::conv2d(scan.x.flatten(0, 1), kernels.c), scan.last};
}

nn::Buffer ConvS5SSMImpl::plan(nn::FramePlan& plan, const nn::Buffer& u, const nn::Buffer& add,
                               const std::string& state) const {
  const Kernels kernels = fold({});
  const nn::Buffer x = plan.state(state, 2 * states(), u.height, u.width, x0_);
  if (dynamics_) {
    dynamics_->plan(plan, u, kernels.b, layer_states(kernels, {}, 1, plan.batch()), x);
  } else {
    plan.scan_step(x, kernels.a, plan.conv(u, kernels.b, {}));
  }
  return plan.conv(x, kernels.c, {}, {.add = add});
}

}  // namespace convssm::cores
