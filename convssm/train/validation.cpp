#include "convssm/train/validation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convssm/data/picture.h"
#include "convssm/io/gif.h"
#include "convssm/metrics/pixels.h"
#include "convssm/metrics/psnr.h"
#include "convssm/metrics/ssim.h"
#include "convssm/models/rollout.h"

namespace convssm::train {
namespace {

constexpr int64_t kClipsShown = 4;
constexpr int64_t kClipsInStrip = 2;
constexpr int64_t kStripFrames = 16;
constexpr int64_t kSmallestForSsim = 11;

at::Tensor as_f01(const at::Tensor& x) { return metrics::u8_to_f01(metrics::truncate_u8(x)); }

void score(nlohmann::json& scores, const std::string& prefix, const at::Tensor& truth, const at::Tensor& forecast) {
  scores[prefix + "psnr_f01"] = metrics::cap_psnr(metrics::psnr_f01(truth, forecast)).values.mean().item<double>();
  if (std::min(truth.size(-1), truth.size(-2)) < kSmallestForSsim) return;
  scores[prefix + "ssim_gauss11"] = metrics::ssim_gauss11(truth, forecast).mean().item<double>();
}

}  // namespace

Validation validate(models::Model& model, const data::Dataset& dataset, const TrainOptions& options) {
  const int64_t context = options.sample_context, frames = options.sample_frames;
  const auto clips = std::min<uint64_t>(options.sample_clips, dataset.size(data::Split::test));
  std::vector<at::Tensor> videos, actions;
  for (uint64_t i = 0; i < clips; ++i) {
    const data::Clip clip = dataset.clip(data::Split::test, i, context + frames);
    videos.push_back(clip.video);
    if (clip.actions.defined()) actions.push_back(clip.actions);
  }
  Validation result;
  result.context = context;
  result.truth = at::stack(videos);
  const at::Tensor known = result.truth.slice(1, 0, context),
                   moves = actions.empty() ? at::Tensor() : at::stack(actions);
  const bool training = model.is_training();
  model.eval();
  const at::Tensor future = models::rollout(model, known, moves, frames);
  model.train(training);
  result.forecast = at::cat({known, future}, 1);

  const at::Tensor truth = as_f01(result.truth.slice(1, context));
  result.scores = nlohmann::json::object();
  score(result.scores, "", truth, as_f01(future));
  score(result.scores, "copy_last.", truth, as_f01(known.slice(1, context - 1)).expand_as(truth).contiguous());
  return result;
}

io::Image strip(const Validation& v) {
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < std::min(v.truth.size(0), kClipsInStrip); ++i) {
    rows.push_back(v.truth[i].slice(0, v.context));
    rows.push_back(v.forecast[i].slice(0, v.context));
  }
  const int64_t generated = v.truth.size(1) - v.context;
  return data::strip_picture(rows, data::evenly_spaced(generated, kStripFrames),
                             data::friendly_scale(v.truth.size(-1)));
}

void save_pictures(const Validation& v, const std::string& base) {
  io::write_png(base + ".png", strip(v));
  const int64_t shown = std::min(v.truth.size(0), kClipsShown), scale = data::friendly_scale(v.truth.size(-1));
  const auto table = [&](int64_t k) {
    std::vector<std::vector<io::Image>> rows(2);
    for (int64_t i = 0; i < shown; ++i) {
      rows[0].push_back(data::picture(v.truth[i][k], scale));
      rows[1].push_back(data::picture(v.forecast[i][k], scale));
    }
    return data::table_picture(rows);
  };
  const io::Image first = table(0);
  io::GifWriter gif(base + ".gif", {.width = first.width, .height = first.height, .channels = first.channels});
  for (int64_t k = 0; k < v.truth.size(1); ++k) gif.write(table(k).pixels);
  gif.close();
}

}  // namespace convssm::train
