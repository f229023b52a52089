// Two settings of one name could not be told apart in a table or a file, so names are unique; the default says what differs.
#include "convssm/evaluate/setting.h"

#include <algorithm>
#include <set>

#include "convssm/base/error.h"
#include "convssm/base/option_reader.h"
#include "convssm/metrics/registry.h"

namespace convssm::evaluate {
namespace {

// "144+156", and what is said of actions.
std::string default_name(const Setting& setting, const nlohmann::json& json) {
  const char* actions = !json.contains("actions") ? "" : setting.actions ? " actions" : " no actions";
  return fmt::format("{}+{}{}", setting.context, setting.longest(), actions);
}

Setting read_setting(const nlohmann::json& json, size_t place) {
  const std::string owner = fmt::format("evaluate.settings[{}]", place);
  Setting setting;
  int64_t frames = 0;
  setting.context = 0;
  OptionReader read(owner, json);
  read("name", setting.name);
  read("context", setting.context);
  read("frames", frames);
  read("actions", setting.actions);
  read("metrics", setting.metrics);
  read.finish();
  const auto require = [&](const char* key, const char* what, int64_t found) {
    if (!json.contains(key)) fail(ErrorKind::usage, "[{}] '{}' is missing: {}", owner, key, what);
    if (found < 1) fail(ErrorKind::usage, "[{}] {} must be at least 1 frame, got {}", owner, key, found);
  };
  require("context", "the frames that are seen", setting.context);
  require("frames", "the frames that are generated after the context", frames);
  for (const std::string& metric : setting.metrics) metrics::find_metric(metric);
  setting.horizons = {frames};
  if (setting.name.empty()) setting.name = default_name(setting, json);
  return setting;
}

}  // namespace

int64_t Setting::longest() const { return *std::max_element(horizons.begin(), horizons.end()); }
int64_t Setting::shortest() const { return *std::min_element(horizons.begin(), horizons.end()); }

nlohmann::json Setting::to_json() const {
  nlohmann::json json = {{"name", name}, {"context", context}, {"frames", longest()}, {"actions", actions}};
  if (!metrics.empty()) json["metrics"] = metrics;
  return json;
}

std::vector<Setting> read_settings(const nlohmann::json& list) {
  if (!list.is_array() || list.empty()) {
    fail(ErrorKind::usage,
         "[evaluate] settings must be a list of at least one, such as [{{context: 144, frames: 156, actions: true}}], "
         "got {}",
         list.dump());
  }
  std::vector<Setting> settings;
  std::set<std::string> names;
  for (const nlohmann::json& item : list) {
    settings.push_back(read_setting(item, settings.size()));
    if (names.insert(settings.back().name).second) continue;
    fail(ErrorKind::usage, "[evaluate.settings[{}]] another setting has the name '{}' too; give each a name",
         settings.size() - 1, settings.back().name);
  }
  return settings;
}

}  // namespace convssm::evaluate
