#include "convssm/evaluate/contest.h"

#include <ATen/ATen.h>

namespace convssm::evaluate {

Contest::Contest(const std::vector<std::string>& names, const Setting& setting, const metrics::MetricSet& metrics,
                 int64_t chunk)
    : metrics_(&metrics), horizons_(setting.horizons), chunk_(chunk) {
  for (const std::string& name : names) scores_.emplace_back(name, metrics);
  if (metrics.i3d() == nullptr) return;
  std::vector<int64_t> lengths;
  for (const int64_t frames : horizons_) lengths.push_back(setting.context + frames);
  fvd_.emplace(*metrics.i3d(), lengths, names.size(), chunk);
}

void Contest::add(const Frames& context, const Frames& truth, const std::vector<Forecast>& forecasts) {
  for (size_t i = 0; i < scores_.size(); ++i) {
    std::vector<FrameScores> futures = {score_frames(*metrics_, truth, forecasts[i].first)};
    futures.insert(futures.end(), forecasts[i].others.begin(), forecasts[i].others.end());
    scores_[i].add(futures);
  }
  if (!fvd_) return;
  for (int64_t clip = 0; clip < truth.f01.size(0); ++clip) {
    const auto whole = [&](const Frames& future) { return at::cat({context.f01[clip], future.f01[clip]}); };
    std::vector<at::Tensor> clips;
    for (const Forecast& forecast : forecasts) clips.push_back(whole(forecast.first));
    fvd_->add(whole(truth), clips);
  }
}

nlohmann::json Contest::rows(size_t h, bool spread) const {
  nlohmann::json rows = nlohmann::json::array();
  for (size_t i = 0; i < scores_.size(); ++i) {
    rows.push_back(scores_[i].row(horizons_[h], chunk_, spread));
    if (fvd_) rows.back()["fvd_i3d"] = fvd_->value(h, i);
  }
  return rows;
}

}  // namespace convssm::evaluate
