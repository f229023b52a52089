// A table of functions and not static registration objects: a linker may drop those from a static library, and their
// order is not defined.
#include "convssm/cores/registry.h"

#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"
#include "convssm/cores/convgru.h"
#include "convssm/cores/convlstm.h"
#include "convssm/cores/convs5.h"
#include "convssm/cores/performer.h"
#include "convssm/cores/s5.h"
#include "convssm/cores/transformer.h"

namespace convssm::cores {
namespace {

template <typename Impl, typename Options>
std::shared_ptr<Core> make(const nlohmann::json& options) {
  return std::make_shared<Impl>(Options::from_json(options));
}

std::vector<CoreInfo>& table() {
  static std::vector<CoreInfo> cores{
      {"convs5", "convolutional state space layers with a diagonal state per pixel", false, false,
       make<ConvS5Impl, ConvS5Options>},
      {"convlstm", "LSTM cells with convolutions", false, false, make<ConvLSTMImpl, ConvLSTMOptions>},
      {"convgru", "gated recurrent units with convolutions", false, false, make<ConvGRUImpl, ConvGRUOptions>},
      {"s5", "state space layers on vectors, one token per frame", true, false, make<S5Impl, S5Options>},
      {"transformer", "causal attention over all frames, with a cache", true, true,
       make<TransformerImpl, TransformerOptions>},
      {"performer", "attention by random features (FAVOR+), with a state of fixed size", true, true,
       make<PerformerImpl, PerformerOptions>},
  };
  return cores;
}

}  // namespace

const std::vector<CoreInfo>& all_cores() { return table(); }

void register_core(CoreInfo info) {
  for (const CoreInfo& core : table()) {
    if (core.name == info.name) fail(ErrorKind::usage, "[register_core] there is a core '{}' already", info.name);
  }
  table().push_back(std::move(info));
}

const CoreInfo& find_core(const std::string& name) {
  std::vector<std::string> names;
  for (const CoreInfo& core : all_cores()) {
    if (name == core.name) return core;
    names.emplace_back(core.name);
  }
  fail_unknown("[make_core] unknown core", name, names);
}

std::shared_ptr<Core> make_core(const std::string& name, const nlohmann::json& options) {
  return find_core(name).make(options);
}

}  // namespace convssm::cores
