// The parts of the page, each "" if the run folder has nothing for it.
#pragma once

#include <string>
#include <vector>

#include "convssm/report/run_view.h"

namespace convssm::report {

std::string page_title(const RunView& run);         // plain text: model and data, or the name of the folder
std::string overview(const RunView& run);           // state, progress, key numbers
std::string training_curves(const RunView& run);    // losses, learning rate, gradient norm, throughput
std::string validation_curves(const RunView& run);  // each metric with its baselines
std::string evaluation(const RunView& run);         // table over horizons, quality over the generated frames
// In units, of a setting of the evaluation, with the maps of its error from samples/.
std::string skill_part(const RunView& run, const nlohmann::json& scores, const std::string& model, size_t setting);
std::string sample_images(const RunView& run);  // the best picture first
std::string commands(const RunView& run);       // to make the run again, and to use it
std::string configuration(const RunView& run);
std::string notes(const RunView& run);

// The picture of the error of a variable in the folder samples/, "error-map-1.png" or "error-map-setting-2-1.png".
inline constexpr const char* kErrorMap = "error-map";
std::string error_map_file(size_t setting, size_t variable);

// "step-000500.gif" -> "step 500"
std::string caption(const std::string& file_name);

// How a metric is shown: "psnr_f01" -> PSNR, in dB, more is better.
struct MetricStyle {
  std::string title, hint;
  int better = 0;  // +1 more, -1 less, 0 not known
  int decimals = 3;
};
MetricStyle metric_style(const std::string& name);

// " ↑", " ↓" or "", behind the title of a metric.
const char* better_arrow(int better);

// PSNR, SSIM, LPIPS and FVD first, as papers have them.
std::vector<std::string> in_usual_order(std::vector<std::string> metrics);

}  // namespace convssm::report
