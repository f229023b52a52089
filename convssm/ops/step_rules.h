// The kinds of ops/pixel_steps.h, apart from its functions: kernels see this header and no tensor.
#pragma once

namespace convssm::ops {

// How the signal m of a state becomes a time step; zero stands for the step of a layer without it.
enum class StepRule {
  softplus,  // softplus(m + log(exp(step) - 1)): any positive step
  sigmoid,   // step 2 sigmoid(m): at most twice the step
};

// What the input of a state is multiplied by.
enum class GainRule {
  zoh,   // (exp(z) - 1) / lambda
  ring,  // sqrt(1 - |a|^2), of the linear recurrent unit
};

}  // namespace convssm::ops
