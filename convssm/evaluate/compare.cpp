#include "convssm/evaluate/compare.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "convssm/base/error.h"
#include "convssm/evaluate/fvd_scores.h"
#include "convssm/evaluate/scores.h"
#include "convssm/metrics/pixels.h"

namespace convssm::evaluate {
namespace {

constexpr int64_t kValuesAtOnce = 4'000'000;  // pixels of frames that are scored together

// A part of a clip [T,C,H,W] as the metrics take it, [1,n,C,H,W].
Frames part_of(const at::Tensor& clip, int64_t begin, int64_t end, bool bytes) {
  const at::Tensor part = clip.slice(0, begin, end).unsqueeze(0);
  if (part.scalar_type() != at::kByte) return {part, {}};
  return {metrics::u8_to_f01(part), bytes ? part : at::Tensor()};
}

FrameScores score_clip(const metrics::MetricSet& metrics, const at::Tensor& truth, const at::Tensor& forecast,
                       int64_t context) {
  const bool bytes = truth.scalar_type() == at::kByte && forecast.scalar_type() == at::kByte;
  const int64_t frames = truth.size(0), step = std::max<int64_t>(1, kValuesAtOnce / truth[0].numel());
  std::vector<FrameScores> parts;
  for (int64_t begin = context; begin < frames; begin += step) {
    const int64_t end = std::min(begin + step, frames);
    parts.push_back(score_frames(metrics, part_of(truth, begin, end, bytes), part_of(forecast, begin, end, bytes)));
  }
  return join_frames(parts);
}

at::Tensor as_f01(const at::Tensor& clip) { return clip.scalar_type() == at::kByte ? metrics::u8_to_f01(clip) : clip; }

std::string size_text(const data::ClipReader& clips) {
  return fmt::format("{} clips of {} frames, {}", clips.clips(), clips.shape().frames, data::frame_text(clips.shape()));
}

std::string pixels_text(const data::ClipReader& truth, const data::ClipReader& forecast) {
  const auto text = [](const data::ClipReader& clips) { return clips.bytes() ? "8 bits" : "float32 in [0,1]"; };
  if (truth.bytes() == forecast.bytes()) return text(truth);
  return fmt::format("truth {}, forecast {}", text(truth), text(forecast));
}

nlohmann::json summary(const Scores& scores, const std::optional<FvdScores>& fvd, const metrics::MetricSet& metrics,
                       const data::ClipReader& truth, const data::ClipReader& forecast, const CompareOptions& o,
                       int64_t clips) {
  const int64_t frames = truth.shape().frames - o.context;
  nlohmann::json row = scores.row(frames, o.chunk), curves = {{"frames", nlohmann::json::array()}}, per_clip;
  if (fvd) row["fvd_i3d"] = fvd->value(0, 0);
  for (int64_t k = 1; k <= frames; ++k) curves["frames"].push_back(k);
  for (const std::string& metric : scores.metrics()) {
    curves[metric][o.name] = scores.curve(metric);
    per_clip[metric] = scores.per_clip(metric);
  }
  const nlohmann::json protocol = {{"samples", clips},
                                   {"context", o.context},
                                   {"frames", truth.shape().frames},
                                   {"chunk", o.chunk},
                                   {"model", o.name},
                                   {"identical_frames", scores.identical_frames()},
                                   {"pixels", pixels_text(truth, forecast)},
                                   {"metrics", metrics.description()},
                                   {"left_out", metrics.left_out()}};
  return {{"protocol", protocol},
          {"horizons", {{{"frames", frames}, {"rows", {row}}}}},
          {"curves", curves},
          {"clips", per_clip}};
}

}  // namespace

void check_alike(const data::ClipReader& truth, const data::ClipReader& forecast) {
  const data::RecordingInfo &a = truth.shape(), &b = forecast.shape();
  const bool same = truth.clips() == forecast.clips() && a.frames == b.frames && a.channels == b.channels &&
                    a.height == b.height && a.width == b.width;
  if (!same) {
    fail(ErrorKind::data, "truth and forecast must be alike: '{}' has {}; '{}' has {}", a.path, size_text(truth),
         b.path, size_text(forecast));
  }
  if (!truth.is_folder() || !forecast.is_folder()) return;
  const auto &x = truth.files(), &y = forecast.files();
  for (size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
    const std::string p = i < x.size() ? x[i] : "nothing", q = i < y.size() ? y[i] : "nothing";
    if (p != q) fail(ErrorKind::data, "both folders must hold files of the same names: '{}' stands against '{}'", p, q);
    const int64_t n = truth.clips_of_files()[i], m = forecast.clips_of_files()[i];
    if (n != m) fail(ErrorKind::data, "files of one name must hold as many clips: '{}' has {} and {}", p, n, m);
  }
}

metrics::ClipSize clip_size(const data::ClipReader& truth, const data::ClipReader& forecast) {
  const data::RecordingInfo& shape = truth.shape();
  return {shape.frames, shape.channels, shape.height, shape.width, truth.bytes() && forecast.bytes()};
}

nlohmann::json compare(data::ClipReader& truth, data::ClipReader& forecast, const metrics::MetricSet& metrics,
                       const CompareOptions& o, const std::function<bool(int64_t)>& progress) {
  const int64_t frames = truth.shape().frames;
  if (o.context < 0 || o.context >= frames) {
    fail(ErrorKind::usage, "the context must be 0 to {} of {} frames, got {}", frames - 1, frames, o.context);
  }
  if (o.chunk < 1) fail(ErrorKind::usage, "the chunk must be at least 1 clip, got {}", o.chunk);
  Scores scores(o.name, metrics);
  std::optional<FvdScores> fvd;
  if (metrics.i3d() != nullptr) fvd.emplace(*metrics.i3d(), std::vector<int64_t>{frames}, 1, o.chunk);
  int64_t done = 0;
  for (bool go_on = true; go_on && done < truth.clips();) {
    const at::Tensor x = truth.next(), y = forecast.next();
    scores.add(score_clip(metrics, x, y, o.context));
    if (fvd) fvd->add(as_f01(x), {as_f01(y)});
    ++done;
    if (progress) go_on = progress(done);
  }
  return summary(scores, fvd, metrics, truth, forecast, o, done);
}

}  // namespace convssm::evaluate
