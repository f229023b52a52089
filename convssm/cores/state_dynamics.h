// Dynamics of ConvS5's states that depend on the input u_k, for every pixel and state its own. With a_bar =
// exp(lambda Delta) and gamma those of the layer without them:
//   selective  Delta_k = softplus(W u_k + log(exp(Delta) - 1)),  a_k = exp(lambda Delta_k),  gamma_k of Delta_k  (Mamba)
//   gated      Delta_k = 2 sigmoid(W_r * u_k) Delta,  a_k and gamma_k of Delta_k,  inputs times 2 sigmoid(W_i * u_k)
//              (RG-LRU)
//   liquid     a_k = v / max(1, |v|),  v = a_bar + l (gamma B * u_k)  (Liquid-S4, exactly)
// W, W_r, W_i and l begin at zero, which is the layer without them; |a_k| <= 1 for every input, up to rounding.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

#include "convssm/ops/pixel_steps.h"

namespace convssm::nn {
class FramePlan;
struct Buffer;
}  // namespace convssm::nn

namespace convssm::cores {

enum class InputDynamics { fixed, selective, gated, liquid };

const char* name(InputDynamics dynamics);
InputDynamics parse_dynamics(const std::string& text);

// The states of a layer, as its parameters and the timing give them.
struct LayerStates {
  ops::PixelStates rates;  // in continuous time; the rule is the dynamics' own
  at::Tensor times;        // float64 [N]: intervals of the frames; undefined for one
  at::Tensor a;            // complex [P] or [N,P]: a_bar
};

class StateDynamics : public torch::nn::Module {
 public:
  // Whether it multiplies its inputs by gamma itself: b is B * u then, and gamma B * u otherwise.
  virtual bool applies_gamma() const = 0;

  // u [N,U,H,W], b [N,2P,H,W] -> what the scan takes.
  virtual ops::PixelCoefficients forward(const at::Tensor& u, const at::Tensor& b, const LayerStates& states) = 0;

  // The same for one frame in a plan, with the step of the state: kernel_b is the kernel of b, [2P,U,k,k].
  virtual void plan(nn::FramePlan& plan, const nn::Buffer& u, const at::Tensor& kernel_b, const LayerStates& states,
                    const nn::Buffer& x) const = 0;
};

struct DynamicsShape {
  int64_t features, states, kernel;  // U, P, and the width of B
};

// nullptr for fixed.
std::shared_ptr<StateDynamics> make_dynamics(InputDynamics dynamics, const DynamicsShape& shape);

}  // namespace convssm::cores
