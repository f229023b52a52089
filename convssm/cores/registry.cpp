#include "convssm/cores/registry.h"

#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"
#include "convssm/cores/convs5.h"
#include "convssm/cores/option_reader.h"
#include "convssm/cores/s5.h"

namespace convssm::cores {
namespace {

template <typename Impl, typename Options>
std::shared_ptr<Core> make(const nlohmann::json& options) {
  return std::make_shared<Impl>(Options::from_json(options));
}

void read_wrapper(OptionReader& read, WrapperOptions& wrapper) {
  read("use_norm", wrapper.use_norm);
  read("prenorm", wrapper.prenorm);
  read("skip", wrapper.skip);
  read("dropout", wrapper.dropout);
}

template <typename Options>
void read_state_space(OptionReader& read, Options& o) {
  read("features", o.features);
  read("state_size", o.state_size);
  read("layers", o.layers);
  read("blocks", o.blocks);
  read("clip_eigs", o.clip_eigs);
  read("dt_min", o.dt_min);
  read("dt_max", o.dt_max);
  read("discretization", [&](const std::string& text) { o.discretization = ssm::parse_discretization(text); });
  read("seed", o.seed);
  read_wrapper(read, o.wrapper);
}

StateInit parse_state_init(const std::string& text) {
  if (text == "hippo") return StateInit::hippo;
  if (text == "gaussian") return StateInit::gaussian;
  fail(ErrorKind::usage, "[ConvS5] init must be hippo or gaussian, got '{}'", text);
}

}  // namespace

ConvS5Options ConvS5Options::from_json(const nlohmann::json& json) {
  ConvS5Options o;
  OptionReader read("ConvS5", json);
  read_state_space(read, o);
  read("kernel_b", o.kernel_b);
  read("kernel_c", o.kernel_c);
  read("kernel_d", o.kernel_d);
  read("init", [&](const std::string& text) { o.init = parse_state_init(text); });
  read("activation_block", [&](const std::string& text) { o.activation_block = nn::parse_block_kind(text); });
  read("activation", [&](const std::string& text) { o.activation = ops::parse_activation(text); });
  read("groups", o.groups);
  read("squeeze_excite", o.squeeze_excite);
  read("feedthrough", o.feedthrough);
  read("skip_connections", o.skip_connections);
  read.finish();
  return o;
}

S5Options S5Options::from_json(const nlohmann::json& json) {
  S5Options o;
  OptionReader read("S5", json);
  read_state_space(read, o);
  read.finish();
  return o;
}

const std::vector<CoreInfo>& all_cores() {
  static const std::vector<CoreInfo> table{
      {"convs5", "convolutional state space layers with a diagonal state per pixel", make<ConvS5Impl, ConvS5Options>},
      {"s5", "state space layers on vectors, one token per frame", make<S5Impl, S5Options>},
  };
  return table;
}

std::shared_ptr<Core> make_core(const std::string& name, const nlohmann::json& options) {
  std::vector<std::string> names;
  for (const CoreInfo& core : all_cores()) {
    if (name == core.name) return core.make(options);
    names.emplace_back(core.name);
  }
  const std::string near = nearest(name, names);
  fail(ErrorKind::usage, "[make_core] unknown core '{}'; {}", name,
       near.empty() ? fmt::format("known are {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near));
}

}  // namespace convssm::cores
