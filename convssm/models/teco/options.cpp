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

TecoOptions TecoOptions::from_json(const nlohmann::json& json) {
  TecoOptions o;
  nlohmann::json encoder = {{"depths", {256, 512}}, {"blocks", 2}}, decoder = {{"depths", {256, 512}}, {"blocks", 4}};
  nlohmann::json quantizer = {{"name", "cosine"}, {"size", 1024}, {"features", 32}}, maskgit = nlohmann::json::object();
  OptionReader read("model", json);
  o.codes.read_from(read);
  read("encoder", encoder);
  read("decoder", decoder);
  read("features", o.features);
  read("quantizer", quantizer);
  read("core", o.core);
  read("maskgit", maskgit);
  o.actions.read_from(read);
  o.masking.read_from(read);
  o.draft.sampling.read_from(read);
  read("label_smoothing", o.label_smoothing);
  read("seed", o.seed);
  read.finish();
  o.encoder = nn::CoderOptions::from_json("model.encoder", encoder);
  o.decoder = nn::CoderOptions::from_json("model.decoder", decoder);
  o.quantizer = nn::QuantizerOptions::from_json("model.quantizer", quantizer);
  read_maskgit(maskgit, o);
  ops::require("model", o.features > 0, "features must be positive, got {}", o.features);
  ops::require("model", o.label_smoothing >= 0 && o.label_smoothing < 1, "label_smoothing must be in [0,1), got {}",
               o.label_smoothing);
  ops::require("model", o.encoder.depths.size() == o.decoder.depths.size(),
               "encoder and decoder need as many depths as each other, got {} and {}", o.encoder.depths.size(),
               o.decoder.depths.size());
  return o;
}

}  // namespace convssm::models
