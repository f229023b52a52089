// What a model of continuous time makes of clips at another frame rate than it was trained on, and of clips with frames
// missing. Every frame of test clips goes in and the forecast after each is compared with the truth (psnr_f01,
// ssim_gauss11).
//   rates     frames come 4, 2, 4/3, 1, 2/3 and 1/2 times as often as in training, with the model's steps rescaled to
//             their interval and without
//   dropped   each frame is missing with probability 0, 0.1, ..., 0.6, and the model is told the true interval, or not,
//             or is shown the last frame again, or its own forecast
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "convssm/data/dataset.h"
#include "convssm/models/model.h"

namespace convssm::evaluate {

struct TimingOptions {
  int64_t context = 25;  // training intervals that a model has seen before its forecasts count
  int64_t frames = 75;   // training intervals that a clip covers
  int64_t samples = 64;  // test clips
  int64_t batch = 8;     // clips at once
  bool quantize = true;  // pixels become 8 bits, truncated, before they are compared
  uint64_t seed = 1;     // of the frames that are dropped
};

struct TimingClips {
  std::shared_ptr<const data::Dataset> trained;  // as in training
  std::shared_ptr<const data::Dataset>
      fine;  // with a quarter of the step, see finer_data; at walls the trajectories differ
};

// The `data` section of a config for clips with four frames where training has one. Error(usage) for datasets that
// cannot be made at another frame rate.
nlohmann::json finer_data(const nlohmann::json& data);

// Error(usage) if the model knows no time between frames.
void require_intervals(models::Model& model, const data::FrameFormat& frames);

// Rates and probabilities together: a clip is run at so many points.
constexpr int64_t kTimingPoints = 13;

// {"protocol", "rates": {"rate": [...], "lines": [...]}, "dropped": {"probability": [...], "lines": [...]}} with lines
// {"name", "psnr_f01": {"mean": [...], "error": [...]}, "ssim_gauss11": ..., "identical": [...]}: at each point the mean
// over clips of the mean over a clip's forecasts, its standard error, and how many forecasts equalled the truth.
// `progress(done)` is told the points done, kTimingPoints of each clip; a false ends the study with the batches so far.
nlohmann::json study_timing(models::Model& model, const TimingClips& clips, const TimingOptions& options,
                            const std::function<bool(int64_t)>& progress = {});

}  // namespace convssm::evaluate
