// What a model can do now, on a few valid clips: a forecaster rolls out, a tokenizer gives the frames back, all clips in one
// row; beside the truth.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convssm/data/comparison.h"
#include "convssm/data/dataset.h"
#include "convssm/models/model.h"
#include "convssm/train/options.h"

namespace convssm::train {

struct Validation {
  data::Comparison clips;
  nlohmann::json scores = nlohmann::json::object();  // psnr_f01, ssim_gauss11 and, of a forecaster, copy_last.*
};

// Scores of what the model can show; none for a model that is neither. `each` is told the frames generated so far; if it
// says false, there is no result.
std::optional<Validation> validate(models::Model& model, const data::Dataset& dataset, const TrainOptions& options,
                                   const std::function<bool(int64_t)>& each = {});

// Two clips at moments spread over the generated part.
io::Image strip(const Validation& validation);

// The strip as PNG and an animation of a few clips, context included, as GIF. `base`: path without ending.
void save_pictures(const Validation& validation, const std::string& base);

}  // namespace convssm::train
