// The `model` section of Perceiver AR.
#include <cmath>

#include "convssm/base/bounds.h"
#include "convssm/base/option_reader.h"
#include "convssm/models/perceiver_ar/perceiver_ar.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr int64_t kMostFeatures = 65536, kMostTokens = 1 << 30;

void check_network(const perceiver_ar::NetworkOptions& o) {
  require_between("model", "features", o.features, 2, kMostFeatures);
  require_between("model", "layers", o.layers, 1, most_layers);
  require_between("model", "widening", o.widening, 1, 64);
  ops::require("model", o.heads > 0 && o.features % o.heads == 0,
               "heads must divide the features, got {} heads and {} features", o.heads, o.features);
  ops::require("model", o.rotary_fraction >= 0 && o.rotary_fraction <= 1,
               "rotary_fraction, the share of a head's channels that turn, must be in [0,1], got {}",
               o.rotary_fraction);
  ops::require("model", o.rotary_fraction == 0 || o.pairs() > 0,
               "rotary_fraction {} of the {} channels of a head is less than a pair; take fewer heads, or 0",
               o.rotary_fraction, o.head_size());
  ops::require("model", o.rotary_fraction > 0 || o.axes,
               "a sequence needs positions: rotary_fraction above 0, or axes: true");
  ops::require("model", std::isfinite(o.wavelength) && o.wavelength >= 1, "wavelength must be at least 1, got {}",
               o.wavelength);
  ops::require("model", !o.axes || o.features % 2 == 0, "axes need an even number of features, got {}", o.features);
}

}  // namespace

PerceiverArOptions PerceiverArOptions::from_json(const nlohmann::json& json) {
  PerceiverArOptions o;
  OptionReader read("model", json);
  o.codes.read_from(read);
  read("actions", o.actions.actions);
  read("action_values", o.actions.action_values);
  read("features", o.network.features);
  read("layers", o.network.layers);
  read("heads", o.network.heads);
  read("widening", o.network.widening);
  read("context", o.context);
  read("latents", o.latents);
  read("rotary_fraction", o.network.rotary_fraction);
  o.network.wavelength = static_cast<double>(o.context);
  read("wavelength", o.network.wavelength);
  read("axes", o.network.axes);
  read("dropout", o.dropout);
  read("log_sum_weight", o.log_sum_weight);
  o.sampling.read_from(read);
  read("seed", o.seed);
  read.finish();
  require_between("model", "latents", o.latents, 2, kMostTokens);
  ops::require("model", o.latents % 2 == 0, "latents must be even: half of them stay when a cache is full, got {}",
               o.latents);
  ops::require("model", o.context >= o.latents && o.context <= kMostTokens,
               "context, the codes in sight, must be at least the {} latents and at most {}, got {}", o.latents,
               kMostTokens, o.context);
  check_network(o.network);
  ops::require("model", o.dropout >= 0 && o.dropout < 1, "dropout must be in [0,1), got {}", o.dropout);
  ops::require("model", std::isfinite(o.log_sum_weight) && o.log_sum_weight >= 0,
               "log_sum_weight must be 0 or positive, got {}", o.log_sum_weight);
  o.actions.action_features = o.network.features;
  return o;
}

}  // namespace convssm::models
