// The `model` section of a code model.
#include "convssm/base/option_reader.h"
#include "convssm/models/codes/code_predictor.h"
#include "convssm/ops/check.h"

namespace convssm::models {

CodeOptions CodeOptions::from_json(const nlohmann::json& json) {
  CodeOptions o;
  nlohmann::json encoder = {{"depths", {256}}}, decoder = {{"depths", {512}}, {"blocks", 4}};
  OptionReader read("model", json);
  o.codes.read_from(read);
  read("encoder", encoder);
  read("decoder", decoder);
  read("core", o.core);
  o.actions.read_from(read);
  o.masking.read_from(read);
  o.sampling.read_from(read);
  read("label_smoothing", o.label_smoothing);
  read("seed", o.seed);
  read.finish();
  o.encoder = nn::CoderOptions::from_json("model.encoder", encoder);
  o.decoder = nn::CoderOptions::from_json("model.decoder", decoder);
  ops::require("model", o.label_smoothing >= 0 && o.label_smoothing < 1, "label_smoothing must be in [0,1), got {}",
               o.label_smoothing);
  ops::require("model", o.encoder.depths.size() == o.decoder.depths.size(),
               "encoder and decoder need as many depths as each other, got {} and {}", o.encoder.depths.size(),
               o.decoder.depths.size());
  return o;
}

}  // namespace convssm::models
