// The pixel predictor compiled to an nn::FramePlan.
#pragma once

#include <memory>

#include "convssm/models/forecaster.h"

namespace convssm::models {

class PixelPredictorImpl;

namespace pixel {

std::unique_ptr<FrameEngine> make_plan_engine(PixelPredictorImpl& model, const EngineOptions& options);

}  // namespace pixel
}  // namespace convssm::models
