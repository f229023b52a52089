// The numbers of metrics.json, as `convssm evaluate` writes it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convssm/report/points.h"
#include "convssm/report/record.h"

namespace convssm::report {

// One rollout of every clip. What is asked of `scores` below is asked of one setting.
struct ScoredSetting {
  std::string name;              // "" of a file without settings, which is itself the only one
  const nlohmann::json* scores;  // {"horizons", "curves"}, inside of the file
};
std::vector<ScoredSetting> scored_settings(const nlohmann::json& metrics);

// The scores of the setting of this name; null if there is none.
const nlohmann::json* find_setting(const nlohmann::json& metrics, const std::string& name);

// Those of the first one; a JSON null if there is none.
const nlohmann::json& first_setting(const nlohmann::json& metrics);

std::vector<int64_t> horizons(const nlohmann::json& scores);

// The name of the model in it.
std::string model_forecast(const nlohmann::json& metrics);

// Those that are forecast beside the model without one: copy of the last frame, blank frame, what its tokenizer gives back.
std::vector<std::string> trivial_forecasts(const nlohmann::json& metrics);

std::optional<double> score(const nlohmann::json& scores, int64_t horizon, const std::string& forecaster,
                            const std::string& metric);

// The metric of each frame ahead; empty if there is none.
std::vector<Point> score_curve(const nlohmann::json& scores, const std::string& forecaster, const std::string& metric);

// One PSNR, SSIM, LPIPS and FVD, of each kind the one that most of the records have, else the one of the paper.
std::vector<std::string> usual_metrics(const std::vector<const Record*>& records);

}  // namespace convssm::report
