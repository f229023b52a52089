// Samples on `valid`: what is chosen by looking at them is not chosen on `test`.
#include "convssm/train/validation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "convssm/generate/rollout.h"
#include "convssm/metrics/measured.h"
#include "convssm/metrics/psnr.h"
#include "convssm/metrics/ssim.h"
#include "convssm/models/tokenizer.h"

namespace convssm::train {
namespace {

constexpr size_t kClipsInStrip = 2, kClipsInGif = 4;
constexpr int64_t kStripFrames = 16;

// Frames of which nothing was measured count nowhere; without others there is no score.
void score(nlohmann::json& scores, const std::string& prefix, const metrics::Measured& clips, const at::Tensor& video) {
  const metrics::Frames truth = clips.truth(true), forecast = clips.forecast(video, true);
  const auto put = [&](const char* metric, const at::Tensor& of_frames) {
    const at::Tensor values = metrics::of_measured(metric, of_frames, truth.share);
    const double mean = at::nanmean(values.clamp_max(metrics::psnr_cap_db)).item<double>();  // an SSIM is below that
    if (std::isfinite(mean)) scores[prefix + metric] = mean;
  };
  put("psnr_f01", metrics::psnr_f01(truth.f01, forecast.f01));
  if (std::min(video.size(-1), video.size(-2)) < metrics::ssim_gauss11_side) return;
  put("ssim_gauss11", metrics::ssim_gauss11(truth.f01, forecast.f01));
}

data::Clips valid_clips(const data::Dataset& dataset, const TrainOptions& options, int64_t frames) {
  const auto count = static_cast<int64_t>(std::min<uint64_t>(options.sample_clips, dataset.size(data::Split::valid)));
  return data::read_clips(dataset, data::Split::valid, 0, count, frames);
}

// A forecaster rolls out; without a result if `each` said stop.
std::optional<Validation> forecast(models::Model& model, const data::Dataset& dataset, const TrainOptions& options,
                                   const std::function<bool(int64_t)>& each) {
  const int64_t context = options.sample_context, frames = options.sample_frames;
  const data::Clips clips = valid_clips(dataset, options, context + frames);
  const data::Clips there = data::to_device(clips, models::device_of(model));
  // Without a compiled plan: that would be a second copy of the weights beside all that training keeps.
  generate::Predictor predictor(model, {.batch = clips.batch(), .compile = false});
  models::Seeds seeds(static_cast<size_t>(clips.batch()));  // one of its own for each clip
  std::iota(seeds.begin(), seeds.end(), 0);
  predictor.start(data::frames_of(there, 0, context), seeds);
  const at::Tensor coming = there.actions.defined() ? there.actions.slice(1, context) : there.actions;
  const at::Tensor dt = there.timing.dt.defined() ? there.timing.dt.slice(1, context) : there.timing.dt;
  const at::Tensor future = generate::rollout(predictor, coming, frames, each, dt).cpu();
  if (future.size(1) < frames) return std::nullopt;

  Validation result;
  result.clips.context = context;
  const at::Tensor video = models::video_of(model, there).cpu(), known = video.slice(1, 0, context);
  for (int64_t i = 0; i < clips.batch(); ++i) {
    result.clips.truth.push_back(video[i]);
    result.clips.forecast.push_back(at::cat({known[i], future[i]}));
  }
  const auto valid = [&](int64_t begin, int64_t end) {
    return clips.valid.defined() ? clips.valid.slice(1, begin, end) : clips.valid;
  };
  const at::Tensor last = metrics::last_measured(known, valid(0, context));
  const metrics::Measured measured(video.slice(1, context), valid(context, context + frames));
  score(result.scores, "", measured, future);
  score(result.scores, "copy_last.", measured, last.unsqueeze(1).expand_as(future).contiguous());
  return result;
}

// A tokenizer gives frames back. They may be single ones, so those of all clips stand in one row.
std::optional<Validation> reconstruct(models::Model& model, const data::Dataset& dataset, const TrainOptions& options,
                                      const std::function<bool(int64_t)>& each) {
  const data::Clips clips = valid_clips(dataset, options, options.sample_frames);
  const at::Tensor video = clips.video.to(models::device_of(model));
  models::Tokenizer& tokenizer = *model.as_tokenizer();
  std::vector<at::Tensor> decoded;
  for (int64_t i = 0; i < video.size(1); ++i) {
    if (each && !each(i)) return std::nullopt;
    decoded.push_back(tokenizer.decode(tokenizer.encode(video.slice(1, i, i + 1))).cpu());
  }
  const at::Tensor given = at::cat(decoded, 1);
  Validation result;
  result.clips.truth.push_back(clips.video.flatten(0, 1));
  result.clips.forecast.push_back(given.flatten(0, 1));
  score(result.scores, "", metrics::Measured(clips.video, clips.valid), given);
  return result;
}

}  // namespace

std::optional<Validation> validate(models::Model& model, const data::Dataset& dataset, const TrainOptions& options,
                                   const std::function<bool(int64_t)>& each) {
  const at::NoGradGuard no_grad;
  const models::EvalMode mode(model);
  if (model.as_forecaster() != nullptr) return forecast(model, dataset, options, each);
  if (model.as_tokenizer() != nullptr) return reconstruct(model, dataset, options, each);
  return Validation{};
}

io::Image strip(const Validation& v) { return data::comparison_strip(v.clips, 0, kClipsInStrip, kStripFrames); }

void save_pictures(const Validation& v, const std::string& base) {
  io::write_png(base + ".png", strip(v));
  data::save_comparison_gif(v.clips, kClipsInGif, base + ".gif");
}

}  // namespace convssm::train
