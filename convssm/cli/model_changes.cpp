// Only gathers: whether a trained model can take a change is asked where it is loaded (run/model_file.cpp).
#include "convssm/cli/model_changes.h"

#include "convssm/io/yaml.h"
#include "convssm/run/config.h"

namespace convssm::cli {

nlohmann::json model_changes(const std::vector<std::string>& overrides) {
  nlohmann::json all = nlohmann::json::object();
  for (const std::string& assignment : overrides) {
    if (assignment.starts_with("model.")) io::set_override(all, assignment);
  }
  return all.value("model", nlohmann::json::object());
}

nlohmann::json scored_checkpoint(const run::LoadedModel& loaded) {
  const run::ModelRecipe& recipe = loaded.recipe;
  nlohmann::json about = {{"step", recipe.step}, {"checksum", loaded.checksum}, {"weights", recipe.weights}};
  const nlohmann::json before = recipe.config.value("model", recipe.model);
  const auto changes = run::differences({{"model", before}}, {{"model", recipe.model}});
  if (!changes.empty()) about["changes"] = changes;
  return about;
}

}  // namespace convssm::cli
