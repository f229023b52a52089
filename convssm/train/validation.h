// What a model can do now: it continues a few test clips on its own, beside the truth.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "convssm/data/dataset.h"
#include "convssm/io/png.h"
#include "convssm/models/model.h"
#include "convssm/train/options.h"

namespace convssm::train {

struct Validation {
  at::Tensor truth;     // [n,T,C,H,W], context and future
  at::Tensor forecast;  // the same with the future made by the model
  int64_t context = 0;
  nlohmann::json scores;  // psnr_f01, ssim_gauss11 and copy_last.* over the generated frames
};

Validation validate(models::Model& model, const data::Dataset& dataset, const TrainOptions& options);

// Truth above, forecast below, for two clips, at frames spaced over the generated part.
io::Image strip(const Validation& validation);

// The strip as PNG and an animation of a few clips, context included, as GIF. `base`: path without ending.
void save_pictures(const Validation& validation, const std::string& base);

}  // namespace convssm::train
