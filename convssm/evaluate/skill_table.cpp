#include "convssm/evaluate/skill_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace convssm::evaluate {
namespace {

constexpr int kTitleWidth = 26, kNumberWidth = 19;

struct ScoreRow {
  std::string title;
  std::vector<nlohmann::json> values;  // of each forecaster; null: none
};

const nlohmann::json* find(const nlohmann::json& object, const char* key) {
  return object.is_object() && object.contains(key) ? &object[key] : nullptr;
}

// One row, unless no forecaster has the score.
void add_row(std::vector<ScoreRow>& rows, const std::string& title, const std::vector<const nlohmann::json*>& scores,
             const char* key) {
  ScoreRow row{title, {}};
  for (const nlohmann::json* own : scores) {
    const nlohmann::json* value = own == nullptr ? nullptr : find(*own, key);
    row.values.push_back(value == nullptr ? nlohmann::json() : *value);
  }
  const auto is_number = [](const nlohmann::json& value) { return value.is_number(); };
  if (std::ranges::any_of(row.values, is_number)) rows.push_back(std::move(row));
}

// Events number `i` of each forecaster.
std::vector<const nlohmann::json*> events_at(const std::vector<const nlohmann::json*>& scores, size_t i) {
  std::vector<const nlohmann::json*> events;
  for (const nlohmann::json* own : scores) {
    const nlohmann::json* all = find(*own, "events");
    events.push_back(all != nullptr && i < all->size() ? &(*all)[i] : nullptr);
  }
  return events;
}

std::vector<ScoreRow> rows_of(const nlohmann::json& variable, const std::vector<const nlohmann::json*>& scores) {
  std::vector<ScoreRow> rows;
  add_row(rows, "rmse -", scores, "rmse");
  add_row(rows, "mae -", scores, "mae");
  add_row(rows, "bias", scores, "bias");
  add_row(rows, "acc +", scores, "acc");
  const auto units = variable["units"].get<std::string>();
  for (size_t i = 0; i < variable["thresholds"].size(); ++i) {
    const auto events = events_at(scores, i);
    const std::string what =
        fmt::format(" >= {}{}{}", variable["thresholds"][i].get<double>(), units.empty() ? "" : " ", units);
    add_row(rows, "csi" + what + " +", events, "csi");
    add_row(rows, "pod" + what + " +", events, "pod");
    add_row(rows, "far" + what + " -", events, "far");
    add_row(rows, "freq. bias" + what, events, "frequency_bias");
    std::vector<const nlohmann::json*> windows;
    for (const nlohmann::json* event : events) windows.push_back(event == nullptr ? nullptr : find(*event, "fss"));
    if (windows.empty() || windows[0] == nullptr) continue;
    std::vector<std::string> sizes;
    for (const auto& [window, value] : windows[0]->items()) sizes.push_back(window);
    std::ranges::sort(sizes, {}, [](const std::string& window) { return std::pair(window.size(), window); });
    for (const std::string& window : sizes) {
      add_row(rows, fmt::format("fss {} px{} +", window, what), windows, window.c_str());
    }
  }
  add_row(rows, "crps -", scores, "crps");
  add_row(rows, "crps_fair -", scores, "crps_fair");
  add_row(rows, "rmse_of_mean -", scores, "rmse_of_mean");
  add_row(rows, "spread", scores, "spread");
  add_row(rows, "spread_skill (1 is right)", scores, "spread_skill");
  return rows;
}

}  // namespace

std::string skill_text(const nlohmann::json& skill) {
  std::string text;
  for (const auto& horizon : skill["horizons"]) {
    for (const auto& variable : skill["variables"]) {
      const auto name = variable["name"].get<std::string>(), units = variable["units"].get<std::string>();
      std::vector<const nlohmann::json*> scores;
      const std::string title = name + (units.empty() ? "" : " [" + units + "]");
      text += fmt::format("\n{:<{}}", fmt::format("{}, to {} ahead", title, horizon["frames"].get<int64_t>()),
                          kTitleWidth + 2);
      for (const auto& row : horizon["rows"]) {
        scores.push_back(&row["variables"][name]);
        text += fmt::format("{:<{}}", row["name"].get<std::string>(), kNumberWidth);
      }
      for (const ScoreRow& row : rows_of(variable, scores)) {
        text += fmt::format("\n  {:<{}}", row.title, kTitleWidth);
        for (const nlohmann::json& value : row.values) {
          text +=
              fmt::format("{:<{}}", value.is_number() ? fmt::format("{:.4g}", value.get<double>()) : "-", kNumberWidth);
        }
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace convssm::evaluate
