#include "convssm/serve/scene.h"

#include <ATen/ATen.h>

#include <chrono>
#include <cmath>

#include "convssm/base/error.h"

namespace convssm::serve {
namespace {

at::Tensor one_of(double number, int64_t count) {
  if (number != std::floor(number) || number < 0 || number >= static_cast<double>(count)) {
    fail(ErrorKind::usage, "action must be a whole number from 0 to {}, got {}", count - 1, number);
  }
  return at::tensor({static_cast<int64_t>(number)});
}

at::Tensor numbers(const Action& action, int64_t values) {
  if (static_cast<int64_t>(action.size()) != values) {
    fail(ErrorKind::usage, "action must be {} numbers, got {}", values, action.size());
  }
  at::Tensor row = at::empty({1, values}, at::kFloat);
  for (size_t i = 0; i < action.size(); ++i) {
    if (!std::isfinite(static_cast<float>(action[i])))
      fail(ErrorKind::usage, "number {} of the action is too large", i);
    row.data_ptr<float>()[i] = static_cast<float>(action[i]);
  }
  return row;
}

}  // namespace

Scene::Scene(models::Model& model, std::unique_ptr<const Beginnings> beginnings, bool mask_learned)
    : model_(model),
      forecaster_(models::forecaster_of(model)),
      beginnings_(std::move(beginnings)),
      rules_{forecaster_.actions(), mask_learned},
      temperature_(forecaster_.draws() ? forecaster_.temperature() : std::nullopt),
      predictor_(model) {
  if (rules_.format.maps > 0 && !mask_learned) {
    fail(ErrorKind::usage,
         "[serve] the model needs {} maps for every frame (model.action_maps), which nobody can give by hand; generate "
         "takes them",
         rules_.format.maps);
  }
  const auto names = static_cast<int64_t>(beginnings_->action_names().size());
  if (names > 0 && rules_.format.matter() && names != rules_.format.count) {
    fail(ErrorKind::data, "[serve] the model learned from {} actions, the world '{}' has {}; name the world it is of",
         rules_.format.count, beginnings_->world(), names);
  }
}

at::Tensor Scene::action_tensor(const Action& action) const {
  const data::ActionFormat& format = rules_.format;
  if (!format.matter()) return {};
  if (action.empty() && takes_masked()) return generate::masked_actions(1, 1, format).select(1, 0);
  if (format.values > 0) return numbers(action, format.values);
  if (action.size() != 1) {
    fail(ErrorKind::usage, "this model needs an action for every frame: a whole number from 0 to {}", format.count - 1);
  }
  return one_of(action[0], format.count);
}

models::State Scene::start(const data::Clips& context, uint64_t seed) {
  data::Clips clip = context;
  if (!rules_.format.matter()) clip.actions = at::Tensor();
  predictor_.start(clip, {seed});
  return predictor_.state();
}

Scene::Made Scene::next(const models::State& state, const at::Tensor& action, std::optional<double> temperature) {
  const auto begin = std::chrono::steady_clock::now();
  if (temperature) forecaster_.set_temperature(*temperature);
  predictor_.start(state);
  const at::Tensor frame = predictor_.next_after(action).select(0, 0).cpu();
  Made made{frame, predictor_.state()};
  made.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (!at::isfinite(made.frame).all().item<bool>()) {
    fail(ErrorKind::numeric, "the next frame holds NaN or infinity: the forecast has diverged. Rewind, or start again");
  }
  return made;
}

}  // namespace convssm::serve
