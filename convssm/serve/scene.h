// What visitors walk through: a model, run one frame at a time for whoever's turn it is, and where walks begin.
// For one thread, that of the model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convssm/generate/actions.h"
#include "convssm/generate/predictor.h"
#include "convssm/serve/beginnings.h"

namespace convssm::serve {

using Action = std::vector<double>;  // one whole number, or the numbers of an action, or nothing: masked, or not needed

class Scene {
 public:
  // The model must outlive it. Error(usage) if it makes no forecasts, Error(data) if the world has other actions than it learned.
  Scene(models::Model& model, std::unique_ptr<const Beginnings> beginnings, bool mask_learned = false);

  const Beginnings& beginnings() const { return *beginnings_; }
  models::Forecaster& forecaster() const { return forecaster_; }
  const generate::ActionRules& rules() const { return rules_; }
  std::string description() const { return model_.description(); }

  // The name of the world that the actions of the model move through; "" if there is none to show beside its frames.
  std::string world() const { return rules_.format.matter() ? beginnings_->world() : ""; }

  // That walks begin with, where the model draws by one.
  std::optional<double> temperature() const { return temperature_; }

  // Whether an action may be left out: it was in training, and nobody has to show where that leads.
  bool takes_masked() const { return rules_.format.matter() && rules_.mask_learned && world().empty(); }

  // As models take it: [1], [1,A] or undefined. Error(usage) that says what is expected.
  at::Tensor action_tensor(const Action& action) const;

  models::State start(const data::Clips& context, uint64_t seed);

  struct Made {
    at::Tensor frame;  // [C,H,W]
    models::State state;
    double milliseconds = 0;
  };
  // Error(numeric) if the frame is not finite. `temperature`: that of this frame, where the model has one.
  Made next(const models::State& state, const at::Tensor& action, std::optional<double> temperature);

 private:
  models::Model& model_;
  models::Forecaster& forecaster_;
  std::unique_ptr<const Beginnings> beginnings_;
  generate::ActionRules rules_;
  std::optional<double> temperature_;  // of its own, before any visitor sets another
  generate::Predictor predictor_;
};

}  // namespace convssm::serve
