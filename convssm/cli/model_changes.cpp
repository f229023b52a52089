// Only gathers: whether a trained model can take a change is asked where it is loaded (run/model_file.cpp,
// run/frame_size.cpp).
#include "convssm/cli/model_changes.h"

#include <fmt/format.h>

#include "convssm/base/log.h"
#include "convssm/io/yaml.h"
#include "convssm/run/config.h"
#include "convssm/run/frame_size.h"

namespace convssm::cli {
namespace {

std::string size_of(const data::FrameFormat& frames) { return fmt::format("{} x {}", frames.height, frames.width); }

}  // namespace

nlohmann::json model_changes(const std::vector<std::string>& overrides) {
  nlohmann::json all = nlohmann::json::object();
  for (const std::string& assignment : overrides) {
    if (assignment.starts_with("model.")) io::set_override(all, assignment);
  }
  return all.value("model", nlohmann::json::object());
}

void take_size(run::LoadedModel& loaded, int64_t height, int64_t width) {
  run::change_frame_size(loaded, height, width);
  const std::string other = other_size_text(loaded);
  if (!other.empty()) log_warning("the model runs on frames of another size than it learned from: {}", other);
}

std::string other_size_text(const run::LoadedModel& loaded) {
  const data::FrameFormat &now = loaded.recipe.frames, &then = loaded.trained;
  if (now.height == then.height && now.width == then.width) return "";
  return fmt::format("{}, trained on {}", size_of(now), size_of(then));
}

nlohmann::json scored_checkpoint(const run::LoadedModel& loaded) {
  const run::ModelRecipe& recipe = loaded.recipe;
  nlohmann::json about = {{"step", recipe.step}, {"checksum", loaded.checksum}, {"weights", recipe.weights}};
  const nlohmann::json before = recipe.config.value("model", recipe.model);
  auto changes = run::differences({{"model", before}}, {{"model", recipe.model}});
  if (!other_size_text(loaded).empty()) {
    changes.push_back(fmt::format("frames: {} -> {}", size_of(loaded.trained), size_of(recipe.frames)));
  }
  if (!changes.empty()) about["changes"] = changes;
  return about;
}

}  // namespace convssm::cli
