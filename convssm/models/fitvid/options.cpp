// The `model` section of FitVid.
#include <cmath>

#include "convssm/base/bounds.h"
#include "convssm/base/option_reader.h"
#include "convssm/models/fitvid/fitvid.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr int64_t kMostStages = 8, kMostBlocks = 16, kMostFilters = 4096, kMostExpansion = 64, kMostVector = 100000;

void check_sizes(const FitVidOptions& o) {
  require_between("model", "stages", o.coder.stages, 1, kMostStages);
  require_between("model", "blocks", o.coder.blocks, 1, kMostBlocks);
  require_between("model", "filters", o.coder.filters, 1, kMostFilters);
  require_between("model", "expansion", o.coder.expansion, 1, kMostExpansion);
  require_between("model", "hidden", o.coder.hidden, 1, kMostVector);
  require_between("model", "memory", o.memory, 1, kMostVector);
  require_between("model", "latent", o.latent, 1, kMostVector);
  require_between("model", "n_past", o.n_past, 0, kMostVector);
}

}  // namespace

FitVidOptions FitVidOptions::from_json(const nlohmann::json& json) {
  FitVidOptions o;
  OptionReader read("model", json);
  read("stages", o.coder.stages);
  read("blocks", o.coder.blocks);
  read("filters", o.coder.filters);
  read("expansion", o.coder.expansion);
  read("hidden", o.coder.hidden);
  read("skips", [&](const std::string& name) {
    ops::require("model", name == "residual" || name == "concat", "skips must be residual or concat, got {}", name);
    o.coder.concat = name == "concat";
  });
  read("memory", o.memory);
  read("latent", o.latent);
  read("stochastic", o.stochastic);
  read("beta", o.beta);
  read("n_past", o.n_past);
  read("seed", o.seed);
  o.actions.read_from(read);
  o.on_codes = json.contains("tokenizer") || json.contains("codebook");
  if (o.on_codes) {
    o.codes.read_from(read);
    o.coded.sampling.read_from(read);
    read("label_smoothing", o.coded.label_smoothing);
  }
  read.finish();
  check_sizes(o);
  ops::require("model", std::isfinite(o.beta) && o.beta >= 0, "beta must be 0 or positive, got {}", o.beta);
  const double smoothing = o.coded.label_smoothing;
  ops::require("model", smoothing >= 0 && smoothing < 1, "label_smoothing must be in [0,1), got {}", smoothing);
  return o;
}

}  // namespace convssm::models
