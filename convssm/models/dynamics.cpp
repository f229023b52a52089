// The order of registration and the names of the streams are those of the first pixel models: files and seeds keep their
// meaning.
#include "convssm/models/dynamics.h"

#include <ATen/ATen.h>

#include "convssm/models/waiting_state.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"
#include "convssm/ops/device.h"

namespace convssm::models {
namespace {

// Takes the name out of the options of a core.
std::string take_core_name(nlohmann::json& options) {
  ops::require("model.core", options.contains("name") && options["name"].is_string(),
               "expected a name such as convs5 (`convssm models` lists them), got {}", options.dump());
  const std::string name = options["name"];
  options.erase("name");
  return name;
}

// Frames-first timing of the cores, [L,B].
ssm::Timing core_timing(const data::ClipTiming& timing) {
  const auto turned = [](const at::Tensor& x) { return x.defined() ? x.t() : x; };
  return {turned(timing.dt), turned(timing.resets), timing.step_rescale};
}

}  // namespace

void check_core_options(const nlohmann::json& core) {
  nlohmann::json options = core;
  const std::string name = take_core_name(options);
  cores::check_frame_core(name, options);
}

at::Tensor time_first(const at::Tensor& x) { return x.transpose(0, 1).flatten(0, 1); }

at::Tensor slice_actions(const at::Tensor& actions, int64_t begin, int64_t end) {
  return actions.defined() ? actions.slice(1, begin, end) : actions;
}

data::ClipTiming slice_timing(const data::ClipTiming& timing, int64_t begin, int64_t end) {
  const auto cut = [&](const at::Tensor& x) { return x.defined() ? x.slice(1, begin, end) : x; };
  return {cut(timing.dt), cut(timing.resets), timing.step_rescale};
}

Dynamics::Dynamics(torch::nn::Module& owner, const nlohmann::json& core, const ActionOptions& actions,
                   const cores::FrameShape& latent, const Stream& stream)
    : actions_(owner, actions, stream) {
  nlohmann::json options = core;
  const std::string name = take_core_name(options);
  cores::FrameShape input = latent;
  input.channels += actions_.features();
  Stream own = stream.split("core");
  core_ = owner.register_module("core", cores::make_frame_core(name, options, input, own.next()));
}

cores::CoreOutput Dynamics::run(const at::Tensor& features, int64_t B, const at::Tensor& coming, const State& inner,
                                const data::ClipTiming& timing) const {
  const at::Tensor x = actions_.beside(features, coming.defined() ? time_first(coming) : coming);
  return core_->forward(x.view({x.size(0) / B, B, x.size(1), x.size(2), x.size(3)}), inner, core_timing(timing));
}

cores::CoreOutput Dynamics::step(const at::Tensor& features, const at::Tensor& action, const State& inner,
                                 const ssm::Timing& timing) const {
  return core_->step(actions_.beside(features, action), inner, timing);
}

bool Dynamics::compiles() const {
  return core_->has_plan() && actions_.format().values == 0 && ops::takes_kernels(core_->parameters()[0]);
}

nn::Buffer Dynamics::plan(nn::FramePlan& plan, nn::Buffer features) const {
  const at::Tensor table = actions_.table();
  const at::Tensor action = table.defined() ? plan.door("action", {plan.batch()}, at::kLong) : at::Tensor();
  plan.set_scope(kCorePrefix);
  const nn::Buffer y = core_->plan_with_rows(plan, features, table, action);
  plan.set_scope("");
  plan.mark_states();
  return y;
}

std::string Dynamics::obstacle_to_carrying() const {
  if (core_->constant_state()) return "";
  return "the state of its core grows with every frame; expected another core, or a transformer with a window";
}

std::string Dynamics::obstacle_to_chunks() const {
  if (!core_->constant_state()) {
    return "it needs a core whose state does not grow; expected chunk_frames: 0, or a transformer with a window";
  }
  if (core_->draws_noise()) return "every chunk is run twice, so the dropout of the core must be 0";
  return "";
}

}  // namespace convssm::models
