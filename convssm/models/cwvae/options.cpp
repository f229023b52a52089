// The `model` section of CW-VAE.
#include <cmath>

#include "convssm/base/bounds.h"
#include "convssm/base/option_reader.h"
#include "convssm/models/cwvae/cwvae.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr int64_t kMostLevels = 10, kMostWindow = 10000, kMostSize = 100000;

void check_hierarchy(const cwvae::HierarchyOptions& o) {
  require_between("model", "levels", o.levels, 1, kMostLevels);
  require_between("model", "factor", o.factor, 1, 1000);
  require_between("model", "stochastic", o.stochastic, 1, kMostSize);
  require_between("model", "deterministic", o.deterministic, 1, kMostSize);
  require_between("model", "embedding", o.embedding, 1, kMostSize);
  require_between("model", "dense_layers", o.dense_layers, 1, 100);
  require_between("model", "dense_features", o.dense_features, 1, kMostSize);
  int64_t frames = 1;
  for (int64_t l = 1; l < o.levels && frames <= kMostWindow; ++l) frames *= o.factor;
  ops::require("model", frames <= kMostWindow,
               "a tick of the top level, factor^(levels-1) frames, is at most {} frames", kMostWindow);
  ops::require("model", std::isfinite(o.min_std) && o.min_std > 0, "min_std must be above 0, got {}", o.min_std);
  const bool fits = o.use_obs.empty() || static_cast<int64_t>(o.use_obs.size()) == o.levels;
  ops::require("model", fits, "use_obs must have a number for each of {} levels, got {}", o.levels, o.use_obs.size());
  bool any = o.use_obs.empty();
  for (const int64_t use : o.use_obs) {
    ops::require("model", use == 0 || use == 1, "use_obs must be 0 or 1 for each level, got {}", use);
    any = any || use == 1;
  }
  ops::require("model", any, "use_obs must be 1 for some level: none would see a frame");
}

void check_loss(const CwvaeOptions& o) {
  ops::require("model", std::isfinite(o.frames.sigma) && o.frames.sigma > 0, "sigma must be above 0, got {}",
               o.frames.sigma);
  const int64_t levels = o.hierarchy.levels, weights = static_cast<int64_t>(o.beta.size());
  ops::require("model", weights == 1 || weights == levels,
               "beta must be one number or one for each of {} levels, got {}", levels, weights);
  for (const double b : o.beta) {
    ops::require("model", std::isfinite(b) && b >= 0, "beta must be 0 or positive, got {}", b);
  }
  ops::require("model", o.kl_balance >= 0 && o.kl_balance <= 1, "kl_balance must be in [0,1], got {}", o.kl_balance);
  ops::require("model", std::isfinite(o.free_nats) && o.free_nats >= 0, "free_nats must be 0 or positive, got {}",
               o.free_nats);
}

}  // namespace

CwvaeOptions CwvaeOptions::from_json(const nlohmann::json& json) {
  CwvaeOptions o;
  OptionReader read("model", json);
  read("levels", o.hierarchy.levels);
  read("factor", o.hierarchy.factor);
  read("stochastic", o.hierarchy.stochastic);
  read("deterministic", o.hierarchy.deterministic);
  read("embedding", o.hierarchy.embedding);
  read("dense_layers", o.hierarchy.dense_layers);
  read("dense_features", o.hierarchy.dense_features);
  read("min_std", o.hierarchy.min_std);
  read("use_obs", o.hierarchy.use_obs);
  read("filters", o.frames.filters);
  read("sigma", o.frames.sigma);
  read("beta", o.beta);
  read("kl_balance", o.kl_balance);
  read("free_nats", o.free_nats);
  read("mean_only", o.mean_only);
  read("seed", o.seed);
  o.actions.read_from(read);
  o.on_codes = json.contains("tokenizer") || json.contains("codebook");
  if (o.on_codes) o.codes.read_from(read);
  read.finish();
  require_between("model", "filters", o.frames.filters, 1, 4096);
  check_hierarchy(o.hierarchy);
  check_loss(o);
  return o;
}

}  // namespace convssm::models
