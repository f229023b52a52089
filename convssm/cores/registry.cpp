// A table of functions and not static registration objects: a linker may drop those from a static library, and their
// order is not defined.
#include "convssm/cores/registry.h"

#include <nlohmann/json.hpp>

#include "convssm/base/registry.h"
#include "convssm/cores/convgru.h"
#include "convssm/cores/convlstm.h"
#include "convssm/cores/convrnn.h"
#include "convssm/cores/convs5.h"
#include "convssm/cores/hybrid.h"
#include "convssm/cores/performer.h"
#include "convssm/cores/s5.h"
#include "convssm/cores/transformer.h"

namespace convssm::cores {
namespace {

template <typename Impl, typename Options>
std::shared_ptr<Core> make(const nlohmann::json& options) {
  return std::make_shared<Impl>(Options::from_json(options));
}

template <typename Options>
void check_options(const nlohmann::json& options) {
  Options::from_json(options);
}

std::vector<CoreInfo> own_cores() {
  return {
      {"convs5", "convolutional state space layers with a diagonal state per pixel", false, false,
       make<ConvS5Impl, ConvS5Options>, check_options<ConvS5Options>},
      {"hybrid", "ConvS5 layers with attention to the last frames between them", false, false,
       make<HybridImpl, HybridOptions>, check_options<HybridOptions>},
      {"convrnn", "the vanilla recurrent network with convolutions", false, false, make<ConvRNNImpl, ConvRNNOptions>,
       check_options<ConvRNNOptions>},
      {"convlstm", "LSTM cells with convolutions", false, false, make<ConvLSTMImpl, ConvLSTMOptions>,
       check_options<ConvLSTMOptions>},
      {"convgru", "gated recurrent units with convolutions", false, false, make<ConvGRUImpl, ConvGRUOptions>,
       check_options<ConvGRUOptions>},
      {"s5", "state space layers on vectors, one token per frame", true, false, make<S5Impl, S5Options>,
       check_options<S5Options>},
      {"transformer", "causal attention over all frames, with a cache", true, true,
       make<TransformerImpl, TransformerOptions>, check_options<TransformerOptions>},
      {"performer", "attention by random features (FAVOR+), with a state of fixed size", true, true,
       make<PerformerImpl, PerformerOptions>, check_options<PerformerOptions>},
  };
}

Registry<CoreInfo>& registry() {
  static Registry<CoreInfo> all("core", own_cores());
  return all;
}

}  // namespace

const std::vector<CoreInfo>& all_cores() { return registry().all(); }

void register_core(CoreInfo info) { registry().add(std::move(info)); }

const CoreInfo& find_core(const std::string& name) { return registry().find(name); }

std::shared_ptr<Core> make_core(const std::string& name, const nlohmann::json& options) {
  return find_core(name).make(options);
}

}  // namespace convssm::cores
