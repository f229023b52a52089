// The timing study of an evaluation (timing.json) as tables and charts: forecasts at other frame rates, and with frames
// missing. Points without a value are dashes in tables and gaps in charts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convssm/report/chart.h"

namespace convssm::report {

// Tables for a terminal.
std::string timing_text(const nlohmann::json& timing);

// PSNR over the frame rate, and over the part of frames that is missing, both in percent.
Chart rates_chart(const nlohmann::json& timing);
Chart dropped_chart(const nlohmann::json& timing);

}  // namespace convssm::report
