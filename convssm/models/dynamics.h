// What the models that go from frame to frame have in common: features of a frame, with the action that follows it beside
// them, through a temporal core.
//   deter_t = core([f_t, embedding(a_{t+1})])
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convssm/cores/frame_core.h"
#include "convssm/data/clips.h"
#include "convssm/models/action_input.h"

namespace convssm::models {

using cores::State;

class Dynamics {
 public:
  Dynamics() = default;

  // Registers `actions` and `core` in the owner. `core` is its section of a config, name included; `latent` are the features
  // of a frame, without actions.
  Dynamics(torch::nn::Module& owner, const nlohmann::json& core, const ActionOptions& actions,
           const cores::FrameShape& latent, const Stream& stream);

  int64_t out_channels() const { return core_->out_channels(); }
  cores::FrameCore& core() const { return *core_; }
  const ActionInput& actions() const { return actions_; }

  // Features [L*B,F,h,w], frames of one time together, of B clips, and the actions [B,L] or [B,L,A] after them: y [L,B,D,h,w].
  cores::CoreOutput run(const at::Tensor& features, int64_t B, const at::Tensor& coming, const State& inner,
                        const data::ClipTiming& timing) const;

  // One frame: features [B,F,h,w], y [B,D,h,w].
  cores::CoreOutput step(const at::Tensor& features, const at::Tensor& action, const State& inner,
                         const ssm::Timing& timing) const;

  // Whether one frame can be a plan: the core has one, and actions are rows of a table or none.
  bool compiles() const;

  // Describes step() to a plan, with the actions of a door `action` int64 [B]. States have the names of a State.
  nn::Buffer plan(nn::FramePlan& plan, nn::Buffer features) const;

  // "", or why the loss of a model with this core cannot be taken chunk by chunk (Model::obstacle_to_chunks).
  std::string obstacle_to_chunks() const;
  std::string obstacle_to_carrying() const;  // Model::obstacle_to_carrying

 private:
  ActionInput actions_;
  std::shared_ptr<cores::FrameCore> core_;
};

// Throws unless `core`, the section of a config, is one of a core that there is, with options that it knows.
void check_core_options(const nlohmann::json& core);

// [B,T,...] -> [T*B,...], frames of one time together as the cores want them.
at::Tensor time_first(const at::Tensor& x);

// [begin,end) in time of actions [B,T,...], undefined ones too.
at::Tensor slice_actions(const at::Tensor& actions, int64_t begin, int64_t end);
data::ClipTiming slice_timing(const data::ClipTiming& timing, int64_t begin, int64_t end);

}  // namespace convssm::models
