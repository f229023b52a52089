// The checks around an engine, so that no engine has to make them, and the choice of the engine.
#include "convssm/generate/predictor.h"

#include <ATen/ATen.h>

#include "convssm/ops/check.h"

namespace convssm::generate {
namespace {

std::unique_ptr<models::FrameEngine> make_engine(models::Forecaster& forecaster, const PredictorOptions& options,
                                                 bool& compiled) {
  at::NoGradGuard no_grad;
  ops::require("Predictor", options.batch > 0, "batch must be positive, got {}", options.batch);
  const bool int8 = options.precision == Precision::int8;
  auto engine = compiled ? forecaster.compile({options.batch, int8}) : nullptr;
  compiled = engine != nullptr;
  ops::require("Predictor", compiled || !int8,
               "int8 needs a model that compiles: on the CPU, with a core that has a plan (convs5, convrnn, convlstm, "
               "convgru); take "
               "float32");
  return compiled ? std::move(engine) : models::eager_engine(forecaster);
}

at::Tensor on(at::Device device, const at::Tensor& x) { return x.defined() ? x.to(device) : x; }

}  // namespace

Precision parse_precision(const std::string& text) {
  if (text == "float32") return Precision::float32;
  if (text == "int8") return Precision::int8;
  fail(ErrorKind::usage, "precision must be float32 or int8, got '{}'", text);
}

const char* name(Precision precision) { return precision == Precision::int8 ? "int8" : "float32"; }

Predictor::Predictor(models::Model& model, const PredictorOptions& options)
    : forecaster_(models::forecaster_of(model)),
      device_(models::device_of(model)),
      options_(options),
      compiled_(options.compile && forecaster_.compiles()),
      engine_(make_engine(forecaster_, options, compiled_)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;

void Predictor::start(const data::Clips& context, const models::Seeds& seeds) {
  at::NoGradGuard no_grad;
  data::check_clips("Predictor", context);
  ops::require("Predictor", context.batch() == options_.batch, "context must be of {} clips, the batch, got {}",
               options_.batch, context.batch());
  ops::require("Predictor", seeds.empty() || static_cast<int64_t>(seeds.size()) == options_.batch,
               "expected a seed for each of {} clips, got {}", options_.batch, seeds.size());
  engine_->start(data::to_device(context, device_), seeds);
}

void Predictor::start(const models::State& state) {
  at::NoGradGuard no_grad;
  ops::require("Predictor", !state.empty(), "the state is empty; start from a context");
  const int64_t clips = forecaster_.clips_in(state);
  ops::require("Predictor", clips == options_.batch, "the state must be of {} clips, the batch, got {}", options_.batch,
               clips);
  engine_->load(state.to(device_));
}

void Predictor::check_frame(const at::Tensor& frame) const {
  ops::require_dims("Predictor", "frame", frame, 4, "[B,C,H,W]");
  ops::require("Predictor", frame.size(0) == options_.batch, "frame must be of {} clips, the batch, got {}",
               options_.batch, frame.size(0));
}

void Predictor::observe(const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  check_frame(frame);
  if (engine_->empty()) {
    engine_->start({frame.to(device_).unsqueeze(1)}, {});
  } else {
    engine_->observe(frame.to(device_), on(device_, action));
  }
}

at::Tensor Predictor::next(const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  check_frame(frame);
  const at::Tensor here = frame.to(device_), coming = on(device_, action);
  if (engine_->empty()) {
    engine_->start({here.unsqueeze(1)}, {});
  } else {
    engine_->observe(here, data::masked_like(coming));
  }
  return engine_->next(coming);
}

at::Tensor Predictor::next() { return next_after({}); }

at::Tensor Predictor::next_after(const at::Tensor& action) {
  at::NoGradGuard no_grad;
  ops::require("Predictor", !engine_->empty(), "there is no frame to go on from; give one, or start() from a context");
  return engine_->next(on(device_, action));
}

at::Tensor Predictor::next_frames(const at::Tensor& actions, int64_t frames) {
  at::NoGradGuard no_grad;
  ops::require("Predictor", !engine_->empty(), "there is no frame to go on from; give one, or start() from a context");
  return engine_->next_frames(on(device_, actions), frames);
}

int64_t Predictor::frames_at_once(const at::Tensor& actions) const {
  return engine_->frames_at_once(on(device_, actions));
}

models::State Predictor::state() const {
  at::NoGradGuard no_grad;
  return engine_->save();
}

}  // namespace convssm::generate
