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

std::vector<int64_t> horizons(const nlohmann::json& metrics);

// The name of the model in it.
std::string model_forecast(const nlohmann::json& metrics);

// Those that are forecast beside the model without one: copy of the last frame, blank frame.
std::vector<std::string> trivial_forecasts(const nlohmann::json& metrics);

std::optional<double> score(const nlohmann::json& metrics, int64_t horizon, const std::string& forecaster,
                            const std::string& metric);

// The metric of each frame ahead; empty if there is none.
std::vector<Point> score_curve(const nlohmann::json& metrics, const std::string& forecaster, const std::string& metric);

// One PSNR, SSIM, LPIPS and FVD, of each kind the one that most of the records have, else the one of the paper.
std::vector<std::string> usual_metrics(const std::vector<const Record*>& records);

}  // namespace convssm::report
