// The `model` section of TECO.
#include "convssm/base/option_reader.h"
#include "convssm/models/teco/teco.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

void read_maskgit(const nlohmann::json& json, TecoOptions& o) {
  OptionReader read("model.maskgit", json);
  read("vocabulary", o.maskgit.vocabulary);
  read("features", o.maskgit.features);
  read("layers", o.maskgit.layers);
  read("heads", o.maskgit.heads);
  o.maskgit.mlp = 4 * o.maskgit.features;
  read("mlp", o.maskgit.mlp);
  read("schedule", o.schedule.name);
  read("power", o.schedule.power);
  read("draft", o.draft.draft);
  read("revise", o.draft.revise);
  read("rounds", o.draft.rounds);
  read.finish();
  o.schedule.check();
  ops::require("model.maskgit", o.draft.draft > 0 && o.draft.revise > 0 && o.draft.rounds >= 0,
               "draft and revise must be at least 1 chunk, rounds 0 or more, got {}, {} and {}", o.draft.draft,
               o.draft.revise, o.draft.rounds);
}

}  // namespace

TecoOptions::TecoOptions() {
  encoder = {{256, 512}, 2, 32}, decoder = {{256, 512}, 4, 32};
  core = {{"name", "convs5"}, {"features", 512}, {"state_size", 1024}, {"blocks", 32}, {"layers", 8}};
}

TecoOptions TecoOptions::from_json(const nlohmann::json& json) {
  TecoOptions o;
  nlohmann::json quantizer = nlohmann::json::object(), maskgit = nlohmann::json::object();
  OptionReader read("model", json);
  o.read_from(read);
  read("features", o.features);
  read("quantizer", quantizer);
  read("maskgit", maskgit);
  read.finish();
  if (quantizer.is_object() && !quantizer.contains("name")) {  // its own, changed
    nlohmann::json own = {{"name", "cosine"}, {"size", 1024}, {"features", 32}};
    own.update(quantizer);
    quantizer = own;
  }
  o.quantizer = nn::QuantizerOptions::from_json("model.quantizer", quantizer);
  ops::require("model", o.quantizer.kind != nn::QuantizerKind::kl,
               "quantizer must have codes, which the prior draws: cosine, ema, gradient or fsq, got kl");
  o.draft.sampling = o.sampling;
  read_maskgit(maskgit, o);
  ops::require("model", o.features > 0, "features must be positive, got {}", o.features);
  return o;
}

}  // namespace convssm::models
