#include "convssm/cli/core_changes.h"

#include "convssm/base/error.h"
#include "convssm/io/yaml.h"

namespace convssm::cli {

nlohmann::json core_changes(const std::vector<std::string>& overrides) {
  nlohmann::json changes = nlohmann::json::object();
  for (const std::string& assignment : overrides) {
    if (!assignment.starts_with("model.")) continue;
    const bool harmless =
        assignment.starts_with("model.core.window=") || assignment.starts_with("model.core.recompute=");
    if (!harmless) {
      fail(ErrorKind::usage,
           "'{}': a trained model cannot be changed, but for model.core.window and model.core.recompute", assignment);
    }
    io::set_override(changes, assignment);
  }
  return changes.empty() ? changes : changes["model"]["core"];
}

}  // namespace convssm::cli
