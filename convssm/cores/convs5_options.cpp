// Reading and checking; what a layer cannot do together is said here and not where it would fail.
#include "convssm/cores/convs5_options.h"

#include <nlohmann/json.hpp>

#include "convssm/base/bounds.h"
#include "convssm/base/option_reader.h"
#include "convssm/cores/layer_stack.h"
#include "convssm/ops/check.h"
#include "convssm/ssm/ring_states.h"

namespace convssm::cores {
namespace {

using ops::require;

// Those that change the time step need one; all need states that do not grow without them.
void check_dynamics(const ConvS5Options& o) {
  if (o.dynamics == InputDynamics::fixed) return;
  const char* dynamics = name(o.dynamics);
  const bool lru = o.init == StateInit::lru, liquid = o.dynamics == InputDynamics::liquid;
  const bool zoh = o.discretization == ssm::Discretization::zoh, euler = o.discretization == ssm::Discretization::euler;
  require("ConvS5", !lru || o.dynamics != InputDynamics::selective,
          "dynamics {} needs a time step, and init lru has none; use dynamics gated, or init hippo", dynamics);
  require("ConvS5", lru || zoh || (liquid && !euler),
          "dynamics {} is for discretization {}, got {}; set it so, or dynamics fixed", dynamics,
          liquid ? "zoh or bilinear" : "zoh", ssm::name(o.discretization));
  require("ConvS5", lru || o.clip_eigs, "dynamics {} needs clip_eigs true: other states could grow", dynamics);
}

std::optional<ops::Activation> parse_output_gate(const std::string& text) {
  if (text == "none") return {};
  try {
    return ops::parse_activation(text);
  } catch (const Error& error) {
    fail(ErrorKind::usage, "[ConvS5] output_gate must be none or the activation of the gate: {}", error.what());
  }
}

StateInit parse_state_init(const std::string& text) {
  if (text == "hippo") return StateInit::hippo;
  if (text == "gaussian") return StateInit::gaussian;
  if (text == "lru") return StateInit::lru;
  fail(ErrorKind::usage, "[ConvS5] init must be hippo, gaussian or lru, got '{}'", text);
}

}  // namespace

void check_options(const ConvS5Options& o) {
  check_stack_options("ConvS5", o);
  require_between("ConvS5", "kernel_b", o.kernel_b, 1, most_kernel);
  require_between("ConvS5", "kernel_c", o.kernel_c, 1, most_kernel);
  require_between("ConvS5", "kernel_d", o.kernel_d, 1, most_kernel);
  require_between("ConvS5", "depthwise_kernel", o.depthwise_kernel, 1, most_kernel);
  check_dynamics(o);
  if (o.init != StateInit::lru) return;
  ssm::check_ring("ConvS5", {o.r_min, o.r_max, o.max_phase});
  require("ConvS5", o.state_size % 2 == 0, "state_size must be even, got {}", o.state_size);
}

ConvS5Options ConvS5Options::from_json(const nlohmann::json& json) {
  ConvS5Options o;
  OptionReader read("ConvS5", json);
  o.read_from(read);
  read.finish();
  return o;
}

void ConvS5Options::read_from(OptionReader& read) {
  ConvS5Options& o = *this;
  read_stack_options(read, o);
  read("kernel_b", o.kernel_b);
  read("kernel_c", o.kernel_c);
  read("kernel_d", o.kernel_d);
  read("init", [&](const std::string& text) { o.init = parse_state_init(text); });
  read("r_min", o.r_min);
  read("r_max", o.r_max);
  read("max_phase", o.max_phase);
  read("learned_state", o.learned_state);
  read("dynamics", [&](const std::string& text) { o.dynamics = parse_dynamics(text); });
  read("activation_block", [&](const std::string& text) { o.activation_block = nn::parse_block_kind(text); });
  read("activation", [&](const std::string& text) { o.activation = ops::parse_activation(text); });
  read("groups", o.groups);
  read("squeeze_excite", o.squeeze_excite);
  read("depthwise_kernel", o.depthwise_kernel);
  read("layer_scale", o.layer_scale);
  read("axis_states", o.axis_states);
  read("feedthrough", o.feedthrough);
  read("output_gate", [&](const std::string& text) { o.output_gate = parse_output_gate(text); });
  read("skip_connections", o.skip_connections);
}

}  // namespace convssm::cores
