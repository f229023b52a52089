// A model and a dataset of one's own, registered from outside of the library: trained, checkpointed, resumed and generated
// from, with everything that the program gives its own models (exact resume, log, report, samples).
//   own_model [RUN_FOLDER]
// The data: a ring that grows from the middle and begins again. The model: one convolution on the last two frames.
#include <torch/torch.h>

#include <cstdio>
#include <string>

#include "convssm/base/error.h"
#include "convssm/base/stop_request.h"
#include "convssm/generate/rollout.h"
#include "convssm/models/registry.h"
#include "convssm/ops/runtime.h"
#include "convssm/report/report.h"
#include "convssm/run/training_run.h"

using namespace convssm;
constexpr int64_t kSide = 16;

struct Rings : data::Dataset {
  data::Clips clip(data::Split split, uint64_t index, int64_t frames) const override {
    const double phase = Stream(7, data::name(split), index % 100).uniform(0, 8);  // a function of (split, index)
    const at::Tensor x = at::arange(kSide) - 7.5, r = (x * x + (x * x).unsqueeze(1)).sqrt();
    const at::Tensor radius = (at::arange(frames) * 0.5 + phase).remainder(8).view({frames, 1, 1});
    return {(2 * at::exp(-(r - radius).square()) - 1).to(at::kFloat).view({1, frames, 1, kSide, kSide})};
  }
  uint64_t size(data::Split) const override { return 100; }
  int64_t longest(data::Split) const override { return data::any_length; }
  data::FrameFormat format() const override { return {1, kSide, kSide}; }
  std::vector<std::string> summary() const override { return {"rings that grow"}; }
};

struct TwoFrames : models::Model, models::Forecaster {
  torch::nn::Conv2d first{nullptr}, second{nullptr};
  TwoFrames() {
    torch::manual_seed(1);  // initial values are a function of the config
    first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 16, 5).padding(2)));
    second = register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 1, 5).padding(2)));
  }
  at::Tensor forecast(const at::Tensor& pairs) { return at::tanh(second(at::relu(first(pairs)))); }  // [N,2,H,W]

  models::LossOutput loss(const models::Clips& clips, const models::LossContext&, const models::State&) override {
    const int64_t T = clips.frames();
    const at::Tensor pairs = at::cat({clips.video.slice(1, 0, T - 2), clips.video.slice(1, 1, T - 1)}, 2);
    const at::Tensor error = forecast(pairs.flatten(0, 1)) - clips.video.slice(1, 2).flatten(0, 1);
    return {error.square().mean(), {}, {}};
  }
  models::Forecaster* as_forecaster() override { return this; }
  std::string description() const override { return "two frames, two convolutions"; }

  static models::State state_of(const at::Tensor& pair, bool waits) {
    models::State state;  // a value of named tensors, known to this model alone
    state.set("pair", pair);
    state.set("waits", at::full({1}, waits, at::kBool));  // the second of the pair is a forecast
    return state;
  }
  models::State start(const models::Clips& context, const models::Seeds&) override {
    const at::Tensor last = context.video.slice(1, -2).squeeze(2);
    return state_of(last.size(1) == 2 ? last.clone() : last.repeat({1, 2, 1, 1}), false);
  }
  models::Forecast next(const models::State& state, const at::Tensor&) override {
    at::NoGradGuard no_grad;
    const at::Tensor pair = state.get("pair"), frame = forecast(pair);
    return {frame, state_of(at::cat({pair.slice(1, 1), frame}, 1), true)};
  }
  models::State observe(const models::State& state, const at::Tensor& frame, const at::Tensor&) override {
    const int64_t before = state.get("waits").item<bool>() ? 0 : 1;  // the true frame takes the place of its forecast
    return state_of(at::cat({state.get("pair").slice(1, before, before + 1), frame}, 1), false);
  }
  int64_t clips_in(const models::State& state) const override { return state.get("pair").size(0); }
};

int main(int argc, char** argv) try {
  ops::start_runtime();
  data::register_dataset({"rings", "a ring that grows", [](auto&, uint64_t) { return std::make_shared<Rings>(); }});
  models::register_model({"two_frames", "", [](auto&, auto&) { return std::make_shared<TwoFrames>(); }});
  const std::string folder = argc > 1 ? argv[1] : "out/own_model";
  nlohmann::json config = {{"model", {{"name", "two_frames"}}}, {"data", {{"name", "rings"}}}};
  config["train"] = {{"batch", 4},  {"frames", 20},           {"lr", 3e-3},         {"warmup", 10},
                     {"ema", 0.98}, {"sample_interval", 200}, {"log_interval", 50}, {"steps", 100}};
  for (const int64_t steps : {100, 200}) {  // the second time it goes on from the checkpoint of the first
    config["train"]["steps"] = steps;
    run::RunFolder locked(folder);
    run::TrainingRun training(run::Config::from_json(config), locked, true, [&] { report::write_report(folder); });
    if (const StopRequest stop; training.run(stop) == train::Outcome::stopped) return stop.exit_code();
  }
  const run::LoadedModel loaded = run::load_model(folder);  // with the averaged weights
  const at::Tensor truth = Rings().clip(data::Split::test, 0, 10).video;
  generate::Predictor predictor(*loaded.model);
  predictor.start({truth.slice(1, 0, 4)});
  const at::Tensor future = generate::rollout(predictor, {}, 6);
  const auto error = [&](const at::Tensor& x) { return (x - truth.slice(1, 4)).square().mean().item<double>(); };
  std::printf("squared error of 6 frames: %.4f, of a copy of the last %.4f\n", error(future),
              error(truth.slice(1, 3, 4)));
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return exit_code(error.kind());
}
