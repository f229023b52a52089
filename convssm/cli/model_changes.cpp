// Only gathers: whether a trained model can take a change is asked where it is loaded (run/model_file.cpp).
#include "convssm/cli/model_changes.h"

#include "convssm/io/yaml.h"

namespace convssm::cli {

nlohmann::json model_changes(const std::vector<std::string>& overrides) {
  nlohmann::json all = nlohmann::json::object();
  for (const std::string& assignment : overrides) {
    if (assignment.starts_with("model.")) io::set_override(all, assignment);
  }
  return all.value("model", nlohmann::json::object());
}

}  // namespace convssm::cli
