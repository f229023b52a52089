// The contract of every model: clips to a loss, contexts to futures. What a model carries from frame to frame is a State,
// a value, so a future can be branched, saved and resumed, and a long clip can be trained on in pieces.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <utility>
#include <vector>

#include "convssm/cores/state.h"
#include "convssm/ssm/diagonal_states.h"

namespace convssm::nn {
class FramePlan;
}

namespace convssm::models {

using cores::State;

struct LossOutput {
  at::Tensor loss;                                        // scalar, a mean over the predicted frames
  std::vector<std::pair<std::string, at::Tensor>> parts;  // named scalars for the log, cut from the graph
  State state;                                            // after the last input frame
};

struct FrameOutput {
  at::Tensor frame;  // [B,C,H,W] in [-1,1]
  State state;
};

class Model : public torch::nn::Module {
 public:
  // Teacher forced: video [B,T,C,H,W] in [-1,1], T >= 2; frames 0..T-2 go in, 1..T-1 are predicted. actions [B,T] int64
  // or undefined; a negative action is the masked one. With `start` the clip goes on where another ended: the loss of a
  // clip is the mean of those of its pieces weighted by their predicted frames (pieces overlap by one frame).
  // `inputs`, of the video's size, goes in instead of its frames; the video stays what is to be predicted.
  virtual LossOutput loss(const at::Tensor& video, const at::Tensor& actions, const State& start = {},
                          const at::Tensor& inputs = {}) = 0;

  // Teacher forced, without gradients: every frame of video [B,T,C,H,W] goes in, and for each the forecast of the frame
  // after it comes out, [B,T,C,H,W]. actions [B,T] lead to the frames that are forecast; undefined: none. `timing` says
  // when the frames were taken, dt as [T] or [T,B]; an error if the model knows no time between frames.
  virtual at::Tensor forecasts(const at::Tensor& video, const at::Tensor& actions, const ssm::Timing& timing = {});

  // Takes in a context [B,K,C,H,W] of at least one frame, with the actions that led to its frames ([B,K] or undefined).
  // With `state` it goes on from there. next() then gives frame K.
  virtual State start(const at::Tensor& context, const at::Tensor& actions, const State& state = {}) = 0;

  // The next frame, with the action [B] that leads to it (undefined: none).
  virtual FrameOutput next(const State& state, const at::Tensor& action) = 0;

  // Describes next() to a plan (nn/frame_plan.h). Its doors: `frame` [B,C,H,W] goes in, `next` [B,C,H,W] comes out,
  // `action` int64 [B] if the model takes actions, and the states by the names of the State. The states are marked.
  virtual bool has_plan() const { return false; }
  virtual void plan(nn::FramePlan& plan);

  virtual bool constant_state() const = 0;      // whether memory per frame of a rollout is constant
  virtual double pair_bytes() const = 0;        // memory that training keeps per pair of frames and sample (attention)
  virtual std::string description() const = 0;  // one line: "pixel predictor, convs5 core, 21.7M parameters"
};

// The number of trainable values.
int64_t parameter_count(const torch::nn::Module& module);

}  // namespace convssm::models
