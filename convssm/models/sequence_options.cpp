#include "convssm/models/sequence_options.h"

#include "convssm/ops/check.h"

namespace convssm::models {

void SequenceOptions::read_from(OptionReader& read) {
  nlohmann::json of_encoder = nlohmann::json::object(), of_decoder = nlohmann::json::object();
  read("encoder", of_encoder);
  read("decoder", of_decoder);
  read("core", core);
  actions.read_from(read);
  read("seed", seed);
  encoder.read_from("model.encoder", of_encoder);
  decoder.read_from("model.decoder", of_decoder);
  ops::require("model", encoder.depths.size() == decoder.depths.size(),
               "encoder and decoder need as many depths as each other, got {} and {}", encoder.depths.size(),
               decoder.depths.size());
}

}  // namespace convssm::models
