// Both halves of the study on the same clips, batch by batch; a batch that was stopped in the middle does not count.
#include "convssm/evaluate/timing_study.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/evaluate/timing_parts.h"
#include "convssm/models/forecaster.h"

namespace convssm::evaluate {
namespace {

void check(const TimingOptions& o, const TimingClips& clips) {
  const auto require = [](bool ok, const char* text, int64_t found) {
    if (!ok) fail(ErrorKind::usage, "[timing] {}, got {}", text, found);
  };
  require(o.context > 0, "context must be at least 1 training interval", o.context);
  require(o.frames > o.context, "clips must be longer than the context", o.frames);
  require(o.samples > 0, "samples must be positive", o.samples);
  require(o.batch > 0, "batch must be positive", o.batch);
  if (clips.trained->size(data::Split::test) == 0) fail(ErrorKind::data, "the dataset has no test clips");
}

nlohmann::json describe(const TimingOptions& o, const metrics::MetricSet& metrics, int64_t clips) {
  return {{"samples", clips},
          {"split", "test"},
          {"context", o.context},
          {"frames", o.frames},
          {"batch", o.batch},
          {"grid", kGrid},
          {"strides", kStrides},
          {"seeds", {{"dropped", o.seed}}},
          {"pixels", o.quantize ? "8 bits, cut down, then [0,1]" : "float32 in [0,1]"},
          {"metrics", metrics.description()}};
}

nlohmann::json rates_json(const TimingLines& lines) {
  std::vector<double> rates;
  for (const int64_t stride : kStrides) rates.push_back(static_cast<double>(kGrid) / static_cast<double>(stride));
  return {{"rate", rates}, {"lines", lines.to_json()}};
}

}  // namespace

nlohmann::json finer_data(const nlohmann::json& data) {
  const data::DatasetInfo& dataset = data::find_dataset(data);
  if (dataset.finer) return dataset.finer(data, kGrid);
  std::vector<std::string> others;
  for (const data::DatasetInfo& other : data::all_datasets()) {
    if (other.finer) others.push_back(other.name);
  }
  fail(ErrorKind::usage,
       "[timing] the study makes clips at other frame rates, which only the dataset{} {} can, not '{}'",
       others.size() == 1 ? "" : "s", fmt::join(others, ", "), dataset.name);
}

void require_intervals(models::Model& model, const data::FrameFormat& frames) {
  data::Clips clip{at::zeros({1, 1, frames.depth(), frames.height, frames.width}, models::device_of(model))};
  clip.timing.step_rescale = 0.5;
  models::Forecaster& forecaster = models::forecaster_of(model);
  try {
    forecaster.forecasts(clip, {});
  } catch (const Error& error) {
    fail(ErrorKind::usage,
         "[timing] the study gives frames at other intervals than in training, which this model cannot take: {}",
         error.what());
  }
}

nlohmann::json study_timing(models::Model& model, const TimingClips& clips, const TimingOptions& o,
                            const std::function<bool(int64_t)>& progress) {
  at::NoGradGuard no_grad;
  const models::EvalMode mode(model);
  check(o, clips);
  const data::FrameFormat format = clips.trained->format();
  require_intervals(model, format);
  const metrics::MetricSet metrics({"psnr_f01", "ssim_gauss11"}, metrics::WeightFolder(),
                                   {1, format.depth(), format.height, format.width, o.quantize});
  const auto total = static_cast<int64_t>(std::min<uint64_t>(o.samples, clips.trained->size(data::Split::test)));
  TimingLines rates = rate_lines(), dropped = dropped_lines();
  const at::Device device = models::device_of(model);
  int64_t done = 0;
  while (done < total) {
    const int64_t count = std::min(o.batch, total - done);
    int64_t points = 0;
    const TimingJob job{models::forecaster_of(model), o, metrics, [&] {
                          points += count;
                          return !progress || progress(done * kTimingPoints + points);
                        }};
    TimingLines more_rates = rate_lines(), more_dropped = dropped_lines();
    const data::Clips fine = data::read_clips(*clips.fine, data::Split::test, done, count, fine_frames(o.frames));
    const data::Clips whole = data::read_clips(*clips.trained, data::Split::test, done, count, o.frames + 1);
    const bool go_on = add_rates(more_rates, job, fine.video.to(device)) &&
                       add_dropped(more_dropped, job, whole.video.to(device), done);
    if (!go_on && points < count * kTimingPoints) break;
    rates.append(more_rates);
    dropped.append(more_dropped);
    done += count;
    if (!go_on) break;
  }
  return {{"protocol", describe(o, metrics, done)},
          {"rates", rates_json(rates)},
          {"dropped", {{"probability", kDropProbabilities}, {"lines", dropped.to_json()}}}};
}

}  // namespace convssm::evaluate
