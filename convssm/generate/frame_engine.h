// How a Predictor runs its model: by a plan, or by Model::next.
#pragma once

#include <memory>

#include "convssm/models/model.h"

namespace convssm::generate {

// Holds the states and the frame that goes in next. Actions are [B] or undefined.
class FrameEngine {
 public:
  virtual ~FrameEngine() = default;
  virtual bool empty() const = 0;  // no frame is there yet
  virtual void begin(const at::Tensor& context, const at::Tensor& actions) = 0;
  virtual void load(const models::State& state) = 0;
  virtual models::State save() const = 0;
  virtual void replace(const at::Tensor& frame) = 0;                         // this one goes in instead
  virtual void feed(const at::Tensor& frame, const at::Tensor& action) = 0;  // goes in; then this one waits
  virtual at::Tensor forecast(const at::Tensor& action) = 0;  // goes in; its successor waits and is given
};

std::unique_ptr<FrameEngine> make_eager_engine(models::Model& model);
std::unique_ptr<FrameEngine> make_plan_engine(models::Model& model, int64_t batch, bool int8);

}  // namespace convssm::generate
