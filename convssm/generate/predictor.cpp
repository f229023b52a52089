#include "convssm/generate/predictor.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/generate/frame_engine.h"
#include "convssm/ops/check.h"

namespace convssm::generate {
namespace {

// In a state: its frame is a forecast, which a true frame replaces.
constexpr const char* kForecastWaits = "forecast_waits";

bool forecast_waits_in(const models::State& state) {
  const auto& items = state.items();
  return std::any_of(items.begin(), items.end(), [](const auto& item) { return item.first == kForecastWaits; });
}

std::unique_ptr<FrameEngine> make_engine(models::Model& model, const PredictorOptions& options) {
  at::NoGradGuard no_grad;
  ops::require("Predictor", options.batch > 0, "batch must be positive, got {}", options.batch);
  const bool int8 = options.precision == Precision::int8;
  const bool planned = options.compile && model.has_plan();
  ops::require("Predictor", planned || !int8,
               "int8 needs a compiled model with a core that has a plan (convs5, convlstm, convgru); take float32");
  return planned ? make_plan_engine(model, options.batch, int8) : make_eager_engine(model);
}

}  // namespace

Precision parse_precision(const std::string& text) {
  if (text == "float32") return Precision::float32;
  if (text == "int8") return Precision::int8;
  fail(ErrorKind::usage, "precision must be float32 or int8, got '{}'", text);
}

Predictor::Predictor(models::Model& model, const PredictorOptions& options)
    : options_(options), engine_(make_engine(model, options)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;

void Predictor::start(const at::Tensor& context, const at::Tensor& actions) {
  at::NoGradGuard no_grad;
  ops::require_dims("Predictor", "context", context, 5, "[B,K,C,H,W]");
  ops::require("Predictor", context.size(0) == options_.batch, "context must be of {} clips, the batch, got {}",
               options_.batch, context.size(0));
  if (actions.defined()) ops::require_shape("Predictor", "actions", actions, context.sizes().slice(0, 2));
  engine_->begin(context, actions);
  truth_waits_ = true;
}

void Predictor::start(const models::State& state) {
  at::NoGradGuard no_grad;
  ops::require("Predictor", !state.empty(), "the state is empty; start from a context");
  const at::Tensor frame = state.get("frame");
  ops::require("Predictor", frame.defined() && frame.dim() == 4 && frame.size(0) == options_.batch,
               "the state must hold a frame of {} clips, the batch, got {}", options_.batch,
               frame.defined() ? ops::shape_text(frame.sizes()) : "none");
  engine_->load(state);
  truth_waits_ = !forecast_waits_in(state);
}

at::Tensor Predictor::next(const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  ops::require_dims("Predictor", "frame", frame, 4, "[B,C,H,W]");
  ops::require("Predictor", frame.size(0) == options_.batch, "frame must be of {} clips, the batch, got {}",
               options_.batch, frame.size(0));
  if (engine_->empty()) {
    engine_->begin(frame.unsqueeze(1), {});
  } else if (truth_waits_) {
    engine_->feed(frame, action.defined() ? at::full_like(action, -1) : action);
  } else {
    engine_->replace(frame);
  }
  truth_waits_ = false;
  return engine_->forecast(action);
}

at::Tensor Predictor::next() { return next_after({}); }

at::Tensor Predictor::next_after(const at::Tensor& action) {
  at::NoGradGuard no_grad;
  ops::require("Predictor", !engine_->empty(), "there is no frame to go on from; give one, or start() from a context");
  truth_waits_ = false;
  return engine_->forecast(action);
}

models::State Predictor::state() const {
  at::NoGradGuard no_grad;
  models::State state = engine_->save();
  if (!truth_waits_) state.set(kForecastWaits, at::ones({1}));
  return state;
}

}  // namespace convssm::generate
