// The contract of every temporal core: a sequence of feature frames to a sequence of feature frames, causally.
// The law that all rest on: splitting a sequence anywhere and carrying the state gives the result of not splitting it.
// One core object is for one thread at a time (it keeps folded kernels between calls); states may go anywhere.
#pragma once

#include <torch/nn/module.h>

#include <string>

#include "convssm/cores/state.h"
#include "convssm/ssm/diagonal_states.h"

namespace convssm::nn {
class FramePlan;
struct Buffer;
}  // namespace convssm::nn

namespace convssm::cores {

using ssm::Timing;

struct CoreOutput {
  at::Tensor y;
  State state;  // after the last frame
};

class Core : public torch::nn::Module {
 public:
  // All frames at once: x [L,B,C,H,W] (cores on vectors: [L,B,C]) -> y of the same shape.
  // Differentiable once in x, state and parameters (the fused residual sums have no second derivative).
  virtual CoreOutput forward(const at::Tensor& x, const State& state = {}, const Timing& timing = {}) = 0;

  // One frame, the same numbers: x [B,C,H,W] (or [B,C]); timing.dt and timing.resets are [] or [B].
  virtual CoreOutput step(const at::Tensor& x, const State& state, const Timing& timing = {});

  // Describes a step to a plan (nn/frame_plan.h): x to y, on states of the plan with the names of those of the State.
  // Cores that cannot are run by step().
  virtual bool has_plan() const { return false; }
  virtual nn::Buffer plan(nn::FramePlan& plan, const nn::Buffer& x);

  // "" if frames of this height and width can go through it; otherwise why not. Cores on vectors are not asked.
  virtual std::string obstacle_to_frames(int64_t /*height*/, int64_t /*width*/) const { return ""; }

  // Whether the state, and with it the cost of a step, stays the same however long the sequence grows.
  virtual bool constant_state() const { return true; }

  // Whether a forward in training mode draws random numbers (dropout): running it twice then gives two results.
  virtual bool draws_noise() const { return false; }

  // Bytes that a forward with gradients keeps for each pair of frames of a sample, beside what it keeps for each frame:
  // at most pair_bytes() L^2. Zero for cores whose memory grows linearly.
  virtual double pair_bytes() const { return 0; }

  // Frames of a sequence that shows, beside one of half the length, what each further frame takes of memory.
  virtual int64_t telling_frames() const { return 8; }
};

}  // namespace convssm::cores
