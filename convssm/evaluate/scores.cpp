#include "convssm/evaluate/scores.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/metrics/chunked.h"
#include "convssm/metrics/psnr.h"

namespace convssm::evaluate {
namespace {

std::vector<double> to_vector(const at::Tensor& values) {
  const at::Tensor x = values.to(at::kDouble).contiguous();
  return {x.data_ptr<double>(), x.data_ptr<double>() + x.numel()};
}

// [clips,frames] -> the means of the clips [known,1] over the frames that have a value, without the clips that have none.
at::Tensor of_known_clips(const at::Tensor& values) {
  if (!at::isnan(values).any().item<bool>()) return values;
  const at::Tensor means = at::nanmean(values, 1);
  return means.masked_select(at::isnan(means).logical_not()).unsqueeze(1);
}

// [clips,futures] -> [clips]
at::Tensor best_future(const std::string& metric, const at::Tensor& values) {
  return metrics::find_metric(metric).better > 0 ? values.amax(1) : values.amin(1);
}

}  // namespace

FrameScores score_frames(const metrics::MetricSet& metrics, const Frames& truth, const Frames& forecast) {
  FrameScores scores;
  for (const auto& [info, metric] : metrics.frame_metrics()) {
    const auto taken = [&, &info = info](const Frames& x) {
      return info->bytes ? x.bytes : info->uncut && x.uncut.defined() ? x.uncut : x.f01;
    };
    at::Tensor values = metric(taken(truth), taken(forecast));
    values = metrics::of_measured(info->name, values, truth.share);
    if (info->name.starts_with("psnr")) {
      const metrics::CappedPsnr capped = metrics::cap_psnr(values);
      values = capped.values;
      scores.identical = std::max(scores.identical, capped.infinite);
    }
    scores.values[info->name] = values;
  }
  return scores;
}

FrameScores join_frames(const std::vector<FrameScores>& parts) {
  FrameScores all;
  for (const auto& [metric, first] : parts.at(0).values) {
    std::vector<at::Tensor> values;
    for (const FrameScores& part : parts) values.push_back(part.values.at(metric));
    all.values[metric] = at::cat(values, 1);
  }
  for (const FrameScores& part : parts) all.identical += part.identical;
  return all;
}

void Scores::add(const std::vector<FrameScores>& futures) {
  for (const auto& [metric, first] : futures.at(0).values) {
    std::vector<at::Tensor> values;
    for (const FrameScores& future : futures) values.push_back(future.values.at(metric));
    values_[metric].push_back(at::stack(values, 1));
  }
  for (const FrameScores& future : futures) identical_ += future.identical;
}

nlohmann::json Scores::row(int64_t frames, int64_t chunk, bool spread) const {
  nlohmann::json row = {{"name", name_}};
  for (const auto& [metric, batches] : values_) {
    const auto put = [&, &metric = metric](const char* mean, const char* deviation, const at::Tensor& values) {
      const at::Tensor known = of_known_clips(values);
      if (known.size(0) == 0) return;
      const metrics::ChunkedMean found = metrics::chunked_mean(known, chunk);
      row[metric][mean] = found.mean;
      if (spread && found.chunks > 1) row[metric][deviation] = found.deviation;
    };
    const at::Tensor values = at::cat(batches).slice(2, 0, frames);
    put("mean", "std", values.mean(1));
    if (values.size(1) > 1) put("best", "best_std", best_future(metric, at::nanmean(values, 2)).unsqueeze(1));
  }
  return row;
}

nlohmann::json Scores::row_of(int64_t frames, const at::Tensor& counted) const {
  const at::Tensor these = counted.slice(1, 0, frames);
  if (these.sum().item<int64_t>() == 0) return nullptr;
  nlohmann::json row = {{"name", name_}};
  for (const auto& [metric, batches] : values_) {
    const at::Tensor values = at::cat(batches).slice(2, 0, frames).to(at::kDouble);  // [clips,futures,N]
    const at::Tensor known = these.unsqueeze(1).logical_and(at::isnan(values).logical_not());
    const double count = known.select(1, 0).sum().item<double>();
    if (count == 0) continue;
    const at::Tensor sums = values.masked_fill(known.logical_not(), 0).sum(2);  // [clips,futures]
    row[metric] = {{"mean", sums.mean(1).sum().item<double>() / count}};
    if (sums.size(1) > 1) row[metric]["best"] = best_future(metric, sums).sum().item<double>() / count;
  }
  return row;
}

std::vector<double> Scores::curve(const std::string& metric) const {
  return to_vector(at::nanmean(at::cat(values_.at(metric)).mean(1), 0));
}

std::vector<double> Scores::per_clip(const std::string& metric) const {
  return to_vector(at::nanmean(at::cat(values_.at(metric)).mean(1), 1));
}

std::vector<std::string> Scores::metrics() const {
  std::vector<std::string> names;
  for (const auto& entry : metrics_->frame_metrics()) names.push_back(entry.info->name);
  return names;
}

}  // namespace convssm::evaluate
