// A forecaster turns contexts into futures, frame by frame.
// Law of futures: a future is a function of (parameters, context, actions, seed of that clip). It does not depend on the
// batch around it, on threads, or on where it was stopped, saved and resumed: the random position is part of the state.
// Three exceptions: the ranges of 8-bit integers are those of the first start, of all its clips together (EngineOptions); where
// many frames are one pass (next_frames), their number is part of the rounding in float32; and a model that draws blocks of
// frames draws as many together as it was handed actions for.
// The state is a value of named tensors; nobody but the forecaster knows the names inside.
// One forecaster is for one thread at a time; states may go anywhere.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "convssm/cores/state.h"
#include "convssm/data/dataset.h"

namespace convssm::models {

using cores::State;
using data::Clips;

using Seeds = std::vector<uint64_t>;  // one for each clip; empty: all 0

struct Forecast {
  at::Tensor frame;  // [B,C,H,W] in [-1,1]
  State state;
};

struct EngineOptions {
  int64_t batch = 1;
  // Convolutions in 8-bit integers, whose ranges are what the convolutions see in the first start() or load() of the
  // engine, over its whole batch. So a future depends, within that rounding, on the clips beside it and on what the engine
  // was started with first: where it matters, one clip to an engine.
  bool int8 = false;
};

// A forecaster that holds its own state, compiled or not: what generation runs.
class FrameEngine {
 public:
  virtual ~FrameEngine() = default;
  virtual bool empty() const = 0;  // nothing was taken in yet
  virtual void start(const Clips& context, const Seeds& seeds) = 0;
  virtual void load(const State& state) = 0;
  virtual State save() const = 0;
  virtual void observe(const at::Tensor& frame, const at::Tensor& action) = 0;
  virtual at::Tensor next(const at::Tensor& action) = 0;  // in memory of its own

  // As of Forecaster; by default one frame after the other.
  virtual int64_t frames_at_once(const at::Tensor&) const { return 1; }
  virtual at::Tensor next_frames(const at::Tensor& actions, int64_t frames);
};

// start(), next() and observe() run without gradients: a loop over frames keeps no graph.
class Forecaster {
 public:
  virtual ~Forecaster() = default;

  // Takes in context clips of at least one frame. next() then gives the frame after them. Models of continuous time
  // read clips.timing; step_rescale holds for what follows too, at intervals of 1.
  virtual State start(const Clips& context, const Seeds& seeds) = 0;

  // The next frame, with the action [B], [B,A] or [B,M,H,W] that leads to it (undefined: none).
  virtual Forecast next(const State& state, const at::Tensor& action) = 0;

  // The next frames together, [B,frames,C,H,W] in Forecast::frame; actions [B,frames] or [B,frames,A], or undefined. There may be
  // more actions than frames: those that are known to come. The same but for rounding as so many next(), and by default just
  // that.
  virtual Forecast next_frames(const State& state, const at::Tensor& actions, int64_t frames);

  // How many frames are best made together from this state with actions like these: where what comes does not depend on
  // what was forecast, many are one pass.
  virtual int64_t frames_at_once(const State&, const at::Tensor& /*actions*/) const { return 1; }

  // A true frame [B,C,H,W], NaN where a pixel was not measured if it knows_missing(). After next() it is the truth of the
  // frame that was just forecast, and takes its place; after start() or another observe() it is the one that follows.
  // `action` led to it.
  virtual State observe(const State& state, const at::Tensor& frame, const at::Tensor& action) = 0;

  // Whether observe() takes NaN for pixels that were not measured.
  virtual bool knows_missing() const { return false; }

  // Teacher forced, without gradients: every frame of clips.video goes in, and for each the forecast of the frame after
  // it comes out, [B,T,C,H,W]. `coming` are the actions that lead to the frames that are forecast, [B,T] or [B,T,A].
  // clips.timing says when the frames were taken. By default frame by frame, for models that know no time.
  // Of clips of codes: the most likely codes, [B,T,h,w]. With `start`, the state after a loss, clips go on where others
  // ended; the default cannot.
  virtual at::Tensor forecasts(const Clips& clips, const at::Tensor& coming, const State& start = {});

  // Whether a training may put such forecasts in place of true frames (train.self_feed).
  virtual bool feeds_itself() const { return !draws(); }

  // The actions that lead to its frames; if they matter, start(), next() and observe() are to be given them.
  virtual data::ActionFormat actions() const { return {}; }

  // Whether futures differ by their seeds.
  virtual bool draws() const { return false; }

  // The same past with the draws of other seeds from here on, one for each clip: branches of one state. As it is where
  // nothing is drawn. By default for states that hold a random position as models/clip_random.h has it.
  virtual State reseeded(const State& state, const Seeds& seeds) const;

  // How far draws spread, where that can be set: 1 is what the model says, small ones come near the most likely. Every
  // next() reads it, for whatever state: it is an option of the forecaster, not part of a future's past.
  std::optional<double> temperature();
  void set_temperature(double value);  // Error(usage) unless it is above 0 and the model has one

  // How many clips a state holds. Error(data) if it is not a state of this forecaster.
  virtual int64_t clips_in(const State& state) const = 0;

  // Whether compile() may give an engine.
  virtual bool compiles() const { return false; }

  // The same frames but for rounding, faster; null if there is none. Parameters are read now: of later changes of
  // the model some are seen and some are not, so it is to be compiled anew. Must not outlive the forecaster.
  virtual std::unique_ptr<FrameEngine> compile(const EngineOptions& options);

 protected:
  virtual double* temperature_setting() { return nullptr; }  // where it stands
};

// The forecaster itself as an engine. Must not outlive it.
std::unique_ptr<FrameEngine> eager_engine(Forecaster& forecaster);

}  // namespace convssm::models
