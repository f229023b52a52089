#include "convssm/evaluate/fvd_scores.h"

#include <ATen/ATen.h>

#include "convssm/base/error.h"
#include "convssm/metrics/fvd.h"

namespace convssm::evaluate {

FvdScores::FvdScores(const metrics::I3d& i3d, std::vector<int64_t> lengths, size_t forecasters, int64_t chunk)
    : i3d_(&i3d), lengths_(std::move(lengths)), chunk_(chunk), features_(lengths_.size()) {
  if (chunk < 2) {
    fail(ErrorKind::usage, "[fvd_i3d] the chunk must be at least 2 clips, got {}; or leave fvd_i3d out of the metrics",
         chunk);
  }
  for (Features& features : features_) features.forecasts.resize(forecasters);
}

void FvdScores::add(const at::Tensor& truth, const std::vector<at::Tensor>& forecasts) {
  for (size_t h = 0; h < lengths_.size(); ++h) {
    features_[h].truth.push_back(i3d_->logits(truth.slice(0, 0, lengths_[h])));
    for (size_t i = 0; i < forecasts.size(); ++i) {
      features_[h].forecasts[i].push_back(i3d_->logits(forecasts[i].slice(0, 0, lengths_[h])));
    }
  }
}

nlohmann::json FvdScores::value(size_t horizon, size_t forecaster) const {
  const Features& features = features_[horizon];
  if (features.truth.size() < 2) return nullptr;
  const metrics::FvdScore score =
      metrics::fvd_i3d(at::stack(features.truth), at::stack(features.forecasts[forecaster]), chunk_);
  nlohmann::json json{{"mean", score.mean},
                      {"all", score.all},
                      {"chunks", score.chunks},
                      {"chunk", score.chunk},
                      {"left_over", score.left_over}};
  if (score.chunks > 1) json["std"] = score.deviation;
  return json;
}

}  // namespace convssm::evaluate
