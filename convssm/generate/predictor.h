// A model run frame by frame, compiled once: for forecasts of any length and for real-time use.
//   Predictor p(model);
//   while (...) forecast = p.next(frame);       // a true frame goes in, the forecast of the one after it comes out
//   p.start({context});  for (...) frame = p.next();   // free-running: its own forecasts go in
// Forecasters that compile (the pixel model with convs5, convrnn, convlstm, convgru) run as a plan: parameters folded and packed at
// construction, for int8 at the first start (later changes of the model are not seen), no graph, constant time and memory
// per frame. Others run by Forecaster::next, as all do on another device than the CPU. Frames, actions and states may be
// anywhere: they are taken to the device of the model, where the forecasts are. The model must outlive its predictor. For
// one thread at a time; all threads work on a frame.
#pragma once

#include <memory>
#include <string>

#include "convssm/models/forecaster.h"
#include "convssm/models/model.h"

namespace convssm::generate {

enum class Precision {
  float32,
  // Convolutions in 8-bit integers; states, scan and norms stay float32. The first start() calibrates them, over its whole
  // batch: the one exception to the law of futures (models/forecaster.h).
  int8,
};

Precision parse_precision(const std::string& text);
const char* name(Precision precision);

struct PredictorOptions {
  int64_t batch = 1;  // clips that run side by side
  Precision precision = Precision::float32;
  bool compile = true;  // false: run by Forecaster::next, to compare
};

class Predictor {
 public:
  // Error(usage) if the model makes no forecasts, or not with this precision.
  explicit Predictor(models::Model& model, const PredictorOptions& options = {});
  ~Predictor();
  Predictor(Predictor&&) noexcept;

  // Takes in a context of K frames; what was before is forgotten. next() then gives frame K. `seeds`: one for each clip,
  // for models that draw; a future is a function of its context, actions and seed. A compiled engine refuses a context
  // with timing.
  void start(const data::Clips& context, const models::Seeds& seeds = {});

  // Goes on from a state of the model or of another predictor.
  void start(const models::State& state);

  // The next frame [B,C,H,W] in [-1,1], in memory of its own; `action` [B], [B,A] or [B,M,H,W] leads to it.
  at::Tensor next(const at::Tensor& frame, const at::Tensor& action = {});  // after this true one
  at::Tensor next();                                                        // after its own last one
  at::Tensor next_after(const at::Tensor& action);                          // the same, with an action

  // Several frames, [B,frames,C,H,W]; actions [B,frames], [B,frames,A] or [B,frames,M,H,W], or more that are known to
  // come. frames_at_once() says how many are best made together with such actions: 1 unless the model makes them in one
  // pass.
  at::Tensor next_frames(const at::Tensor& actions, int64_t frames);
  int64_t frames_at_once(const at::Tensor& actions) const;

  // A true frame [B,C,H,W] that `action` led to, without a forecast: as Forecaster::observe().
  void observe(const at::Tensor& frame, const at::Tensor& action = {});

  models::State state() const;  // a value: save it, branch it
  int64_t batch() const { return options_.batch; }
  bool compiled() const { return compiled_; }

 private:
  void check_frame(const at::Tensor& frame) const;

  models::Forecaster& forecaster_;
  at::Device device_;
  PredictorOptions options_;
  bool compiled_;
  std::unique_ptr<models::FrameEngine> engine_;
};

}  // namespace convssm::generate
