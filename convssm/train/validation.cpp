// Samples on `valid`: what is chosen by looking at them is not chosen on `test`.
#include "convssm/train/validation.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/generate/rollout.h"
#include "convssm/metrics/pixels.h"
#include "convssm/metrics/psnr.h"
#include "convssm/metrics/ssim.h"
#include "convssm/models/tokenizer.h"

namespace convssm::train {
namespace {

constexpr size_t kClipsInStrip = 2, kClipsInGif = 4;
constexpr int64_t kStripFrames = 16;

void score(nlohmann::json& scores, const std::string& prefix, const at::Tensor& truth, const at::Tensor& forecast) {
  scores[prefix + "psnr_f01"] = metrics::cap_psnr(metrics::psnr_f01(truth, forecast)).values.mean().item<double>();
  if (std::min(truth.size(-1), truth.size(-2)) < metrics::ssim_gauss11_side) return;
  scores[prefix + "ssim_gauss11"] = metrics::ssim_gauss11(truth, forecast).mean().item<double>();
}

// The clips after their context as the model sees them, [B,T,C,H,W]; fewer frames if `each` said stop.
at::Tensor shown_by(models::Model& model, const data::Clips& clips, int64_t context,
                    const std::function<bool(int64_t)>& each) {
  if (model.as_forecaster() != nullptr) {
    // Without a compiled plan: that would be a second copy of the weights beside all that training keeps.
    generate::Predictor predictor(model, {.batch = clips.batch(), .compile = false});
    predictor.start(data::frames_of(clips, 0, context));
    const at::Tensor coming = clips.actions.defined() ? clips.actions.slice(1, context) : clips.actions;
    return generate::rollout(predictor, coming, clips.frames() - context, each);
  }
  models::Tokenizer& tokenizer = *model.as_tokenizer();
  return tokenizer.decode(tokenizer.encode(clips.video.slice(1, context)));
}

}  // namespace

std::optional<Validation> validate(models::Model& model, const data::Dataset& dataset, const TrainOptions& options,
                                   const std::function<bool(int64_t)>& each) {
  if (model.as_forecaster() == nullptr && model.as_tokenizer() == nullptr) return Validation{};
  const at::NoGradGuard no_grad;
  const models::EvalMode mode(model);
  const int64_t context = options.sample_context, frames = options.sample_frames;
  const auto count = static_cast<int64_t>(std::min<uint64_t>(options.sample_clips, dataset.size(data::Split::valid)));
  const data::Clips clips = data::read_clips(dataset, data::Split::valid, 0, count, context + frames);
  const at::Tensor known = clips.video.slice(1, 0, context);
  const at::Tensor future = shown_by(model, data::to_device(clips, models::device_of(model)), context, each).cpu();
  if (future.size(1) < frames) return std::nullopt;

  Validation result;
  result.clips.context = context;
  for (int64_t i = 0; i < count; ++i) {
    result.clips.truth.push_back(clips.video[i]);
    result.clips.forecast.push_back(at::cat({known[i], future[i]}));
  }
  const at::Tensor truth = metrics::truncated_f01(clips.video.slice(1, context));
  const at::Tensor last = metrics::truncated_f01(known.slice(1, context - 1)).expand_as(truth).contiguous();
  score(result.scores, "", truth, metrics::truncated_f01(future));
  score(result.scores, "copy_last.", truth, last);
  return result;
}

io::Image strip(const Validation& v) { return data::comparison_strip(v.clips, 0, kClipsInStrip, kStripFrames); }

void save_pictures(const Validation& v, const std::string& base) {
  io::write_png(base + ".png", strip(v));
  data::save_comparison_gif(v.clips, kClipsInGif, base + ".gif");
}

}  // namespace convssm::train
