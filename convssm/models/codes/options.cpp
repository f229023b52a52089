// The `model` section of a code model.
#include "convssm/base/option_reader.h"
#include "convssm/models/codes/code_predictor.h"

namespace convssm::models {

CodeOptions::CodeOptions() {
  encoder = {{256}, 1, 32}, decoder = {{512}, 4, 32};
  core = {{"name", "convs5"}, {"features", 512}, {"state_size", 512}, {"layers", 8}};
}

CodeOptions CodeOptions::from_json(const nlohmann::json& json) {
  CodeOptions o;
  OptionReader read("model", json);
  o.read_from(read);
  read.finish();
  return o;
}

}  // namespace convssm::models
