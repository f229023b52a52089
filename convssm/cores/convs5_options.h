// The options of ConvS5, and of every layer of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "convssm/cores/layer_wrapper.h"
#include "convssm/cores/state_dynamics.h"
#include "convssm/nn/activation_block.h"
#include "convssm/ssm/discretize.h"

namespace convssm {
class OptionReader;
}

namespace convssm::cores {

// How the states are parameterized and begin: hippo and gaussian in continuous time, lru in discrete time (ssm/ring_states.h),
// which takes no dt and no step_rescale.
enum class StateInit { hippo, gaussian, lru };

struct ConvS5Options {
  int64_t features = 0;    // U, channels of the frames
  int64_t state_size = 0;  // N, the real state; P = N/2 complex states are stored
  int64_t layers = 1;
  int64_t blocks = 1;     // equal blocks of the HiPPO matrix
  bool clip_eigs = true;  // real parts of the eigenvalues at most -1e-4
  int64_t kernel_b = 3, kernel_c = 3, kernel_d = 3;
  double dt_min = 1e-3, dt_max = 1e-1;  // range of the initial time steps
  ssm::Discretization discretization = ssm::Discretization::zoh;
  StateInit init = StateInit::hippo;
  double r_min = 0.9, r_max = 0.999;     // of lru: the ring of the initial eigenvalues
  double max_phase = 6.283185307179586;  // of lru: their angles are uniform in (0, max_phase]
  bool learned_state = false;            // the state before the first frame is a parameter, the same in every pixel
  InputDynamics dynamics = InputDynamics::fixed;  // how the recurrence depends on the input
  nn::BlockKind activation_block = nn::BlockKind::resnet;
  ops::Activation activation = ops::Activation::gelu;
  int64_t groups = 32;  // of the group norms in the activation block
  bool squeeze_excite = false;
  int64_t depthwise_kernel = 7;                     // of the block convnext
  double layer_scale = 0.1;                         // of the block convnext, at the start
  int64_t axis_states = 16;                         // of the block s4nd
  bool feedthrough = false;                         // adds D * u to y; the block `standard` always has it
  std::optional<ops::Activation> output_gate = {};  // the gate's act; none without
  WrapperOptions wrapper = {};
  bool skip_connections = false;  // input of layer 3 to layer 8, of layer 6 to layer 11
  uint64_t seed = 0;              // of the initial values

  // From {"features": 64, "state_size": 64, ...}; the wrapper's options are on the same level. Unknown keys are errors.
  static ConvS5Options from_json(const nlohmann::json& json);
  void read_from(OptionReader& read);
};

// Error(usage) for values that no layer can be made of.
void check_options(const ConvS5Options& options);

}  // namespace convssm::cores
