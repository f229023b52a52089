#include "convssm/evaluate/scores.h"

#include <ATen/ATen.h>

#include "convssm/metrics/chunked.h"
#include "convssm/metrics/pixels.h"
#include "convssm/metrics/psnr.h"

namespace convssm::evaluate {
namespace {

std::vector<double> to_vector(const at::Tensor& values) {
  const at::Tensor x = values.to(at::kDouble).contiguous();
  return {x.data_ptr<double>(), x.data_ptr<double>() + x.numel()};
}

}  // namespace

Frames as_frames(const at::Tensor& video, bool quantize) {
  if (!quantize) return {metrics::to_f01(video), {}};
  const at::Tensor bytes = metrics::truncate_u8(video);
  return {metrics::u8_to_f01(bytes), bytes};
}

FrameScores score_frames(const metrics::MetricSet& metrics, const Frames& truth, const Frames& forecast) {
  FrameScores scores;
  for (const auto& [info, metric] : metrics.frame_metrics()) {
    at::Tensor values = info->bytes ? metric(truth.bytes, forecast.bytes) : metric(truth.f01, forecast.f01);
    if (info->name.starts_with("psnr")) {
      const metrics::CappedPsnr capped = metrics::cap_psnr(values);
      values = capped.values;
      scores.identical = capped.infinite;
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

void Scores::add(const FrameScores& clips) {
  for (const auto& [metric, values] : clips.values) values_[metric].push_back(values);
  identical_ += clips.identical;
}

nlohmann::json Scores::row(int64_t frames, int64_t chunk, bool spread) const {
  nlohmann::json row = {{"name", name_}};
  for (const auto& [metric, batches] : values_) {
    const metrics::ChunkedMean mean = metrics::chunked_mean(at::cat(batches).slice(1, 0, frames), chunk);
    row[metric] = {{"mean", mean.mean}};
    if (spread && mean.chunks > 1) row[metric]["std"] = mean.deviation;
  }
  return row;
}

nlohmann::json Scores::row_of(int64_t frames, const at::Tensor& counted) const {
  const at::Tensor these = counted.slice(1, 0, frames);
  if (!these.any().item<bool>()) return nullptr;
  nlohmann::json row = {{"name", name_}};
  for (const auto& [metric, batches] : values_) {
    const at::Tensor values = at::cat(batches).slice(1, 0, frames).to(at::kDouble);
    row[metric] = {{"mean", values.masked_select(these).mean().item<double>()}};
  }
  return row;
}

std::vector<double> Scores::curve(const std::string& metric) const {
  return to_vector(at::cat(values_.at(metric)).mean(0));
}

std::vector<double> Scores::per_clip(const std::string& metric) const {
  return to_vector(at::cat(values_.at(metric)).mean(1));
}

std::vector<std::string> Scores::metrics() const {
  std::vector<std::string> names;
  for (const auto& entry : metrics_->frame_metrics()) names.push_back(entry.info->name);
  return names;
}

}  // namespace convssm::evaluate
