// Each dynamics is a class; what they share is that all of their parameters begin at zero. In a plan the input gate is given
// once for each half of the states, and its factor 2 to the kernel of b. Signals of steps stay in float32 where convolutions are
// in bytes: an error of theirs is multiplied by an eigenvalue, which may be 1e5, and turns the state by that angle.
#include "convssm/cores/state_dynamics.h"

#include <ATen/ATen.h>

#include <array>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/dense.h"
#include "convssm/ops/liquid.h"

namespace convssm::cores {
namespace {

ops::PixelStates with_rule(const LayerStates& states, ops::StepRule rule) {
  ops::PixelStates rates = states.rates;
  rates.rule = rule;
  return rates;
}

// Parameter: `step` [P,U].
class Selective : public StateDynamics {
 public:
  explicit Selective(const DynamicsShape& shape)
      : step_(register_parameter("step", at::zeros({shape.states, shape.features}))) {}

  bool applies_gamma() const override { return true; }

  ops::PixelCoefficients forward(const at::Tensor& u, const at::Tensor& b, const LayerStates& states) override {
    return ops::pixel_steps(with_rule(states, ops::StepRule::softplus), states.times, ops::dense(u, step_), b);
  }

  void plan(nn::FramePlan& plan, const nn::Buffer& u, const at::Tensor& kernel_b, const LayerStates& states,
            const nn::Buffer& x) const override {
    const nn::Buffer signal = plan.conv(u, step_, {}, {.exact = true}), b = plan.conv(u, kernel_b, {});
    plan.pixel_step(x, with_rule(states, ops::StepRule::softplus), signal, b);
  }

 private:
  at::Tensor step_;
};

// Parameters: `gates` [2P,U,k,k] and `bias` [2P], first those of r, then those of i.
class Gated : public StateDynamics {
 public:
  explicit Gated(const DynamicsShape& shape)
      : P_(shape.states),
        gates_(register_parameter("gates", at::zeros({2 * P_, shape.features, shape.kernel, shape.kernel}))),
        bias_(register_parameter("bias", at::zeros({2 * P_}))) {}

  bool applies_gamma() const override { return true; }

  ops::PixelCoefficients forward(const at::Tensor& u, const at::Tensor& b, const LayerStates& states) override {
    const at::Tensor signals = ops::conv2d(u, gates_, bias_);
    const at::Tensor open = 2 * at::sigmoid(signals.narrow(1, P_, P_));
    const at::Tensor input = (b.unflatten(1, {2, P_}) * open.unsqueeze(1)).flatten(1, 2);
    return ops::pixel_steps(with_rule(states, ops::StepRule::sigmoid), states.times, signals.narrow(1, 0, P_), input);
  }

  void plan(nn::FramePlan& plan, const nn::Buffer& u, const at::Tensor& kernel_b, const LayerStates& states,
            const nn::Buffer& x) const override {
    const at::Tensor open = gates_.narrow(0, P_, P_), open_bias = bias_.narrow(0, P_, P_);
    const nn::Buffer signal = plan.conv(u, gates_.narrow(0, 0, P_), bias_.narrow(0, 0, P_), {.exact = true});
    const nn::Buffer input = plan.conv(u, at::cat({open, open}), at::cat({open_bias, open_bias}));
    const nn::Buffer b = plan.gate(plan.conv(u, 2 * kernel_b, {}), input);
    plan.pixel_step(x, with_rule(states, ops::StepRule::sigmoid), signal, b);
  }

 private:
  int64_t P_;
  at::Tensor gates_, bias_;
};

// Parameter: `l` [P,2], (re, im).
class Liquid : public StateDynamics {
 public:
  explicit Liquid(const DynamicsShape& shape) : l_(register_parameter("l", at::zeros({shape.states, 2}))) {}

  bool applies_gamma() const override { return false; }

  // The scan writes over its input, which the gradient of the coefficients needs.
  ops::PixelCoefficients forward(const at::Tensor& u, const at::Tensor& b, const LayerStates& states) override {
    (void)u;
    const at::Tensor a = ops::liquid_coefficients(states.a, at::view_as_complex(l_), b);
    return {a, at::GradMode::is_enabled() ? b.clone() : b};
  }

  void plan(nn::FramePlan& plan, const nn::Buffer& u, const at::Tensor& kernel_b, const LayerStates& states,
            const nn::Buffer& x) const override {
    plan.liquid_step(x, states.a, at::view_as_complex(l_.contiguous()), plan.conv(u, kernel_b, {}));
  }

 private:
  at::Tensor l_;
};

struct DynamicsName {
  InputDynamics dynamics;
  const char* name;
};

constexpr std::array kNames{DynamicsName{InputDynamics::fixed, "fixed"},
                            DynamicsName{InputDynamics::selective, "selective"},
                            DynamicsName{InputDynamics::gated, "gated"}, DynamicsName{InputDynamics::liquid, "liquid"}};

}  // namespace

const char* name(InputDynamics dynamics) { return kNames[static_cast<size_t>(dynamics)].name; }

InputDynamics parse_dynamics(const std::string& text) {
  for (const DynamicsName& each : kNames) {
    if (text == each.name) return each.dynamics;
  }
  fail(ErrorKind::usage, "[ConvS5] dynamics must be fixed, selective, gated or liquid, got '{}'", text);
}

std::shared_ptr<StateDynamics> make_dynamics(InputDynamics dynamics, const DynamicsShape& shape) {
  switch (dynamics) {
    case InputDynamics::selective:
      return std::make_shared<Selective>(shape);
    case InputDynamics::gated:
      return std::make_shared<Gated>(shape);
    case InputDynamics::liquid:
      return std::make_shared<Liquid>(shape);
    default:
      return nullptr;
  }
}

}  // namespace convssm::cores
