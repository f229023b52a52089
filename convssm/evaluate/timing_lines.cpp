// The scores of the timing study, gathered and averaged.
#include <ATen/ATen.h>

#include <cmath>

#include "convssm/evaluate/timing_parts.h"
#include "convssm/metrics/psnr.h"

namespace convssm::evaluate {
namespace {

nlohmann::json mean_of(const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  double sum = 0;
  for (const double x : values) sum += x;
  return sum / static_cast<double>(values.size());
}

// The standard error of the mean; null for fewer than two values.
nlohmann::json error_of(const std::vector<double>& values) {
  if (values.size() < 2) return nullptr;
  const auto n = static_cast<double>(values.size());
  const double mean = mean_of(values);
  double squares = 0;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / (n - 1) / n);
}

}  // namespace

TimingLines::TimingLines(std::vector<std::string> names, size_t points)
    : names_(std::move(names)), points_(points), cells_(names_.size() * points) {}

void TimingLines::add(size_t line, size_t point, const FrameScores& scores, const at::Tensor& counted) {
  Cell& to = cell(line, point);
  for (const auto& [metric, values] : scores.values) {
    for (int64_t b = 0; b < values.size(0); ++b) {
      const at::Tensor own = counted.defined() ? values[b].masked_select(counted[b]) : values[b];
      if (own.numel() == 0) continue;
      to.clips[metric].push_back(own.to(at::kDouble).mean().item<double>());
      if (metric.starts_with("psnr")) to.identical += (own >= metrics::psnr_cap_db).sum().item<int64_t>();
    }
  }
}

void TimingLines::append(const TimingLines& later) {
  for (size_t i = 0; i < cells_.size(); ++i) {
    for (const auto& [metric, values] : later.cells_[i].clips) {
      auto& to = cells_[i].clips[metric];
      to.insert(to.end(), values.begin(), values.end());
    }
    cells_[i].identical += later.cells_[i].identical;
  }
}

nlohmann::json TimingLines::to_json() const {
  nlohmann::json lines = nlohmann::json::array();
  for (size_t line = 0; line < names_.size(); ++line) {
    nlohmann::json out = {{"name", names_[line]}};
    for (size_t point = 0; point < points_; ++point) {
      const Cell& from = cell(line, point);
      for (const char* metric : {"psnr_f01", "ssim_gauss11"}) {
        const auto found = from.clips.find(metric);
        const std::vector<double> values = found == from.clips.end() ? std::vector<double>() : found->second;
        out[metric]["mean"].push_back(mean_of(values));
        out[metric]["error"].push_back(error_of(values));
      }
      out["identical"].push_back(from.identical);
    }
    lines.push_back(out);
  }
  return lines;
}

}  // namespace convssm::evaluate
