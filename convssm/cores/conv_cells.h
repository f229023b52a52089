// What ConvRNN, ConvLSTM and ConvGRU share: a stack of convolutional cells in the wrapper of ConvS5,
//   h = cell(u),   out = norm(u + h)
// The convolutions of the inputs are done for all frames at once; only those of the state go frame by frame. A cell has
// no notion of time between frames: dt and step_rescale are refused. Resets set the state to zero before a frame.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "convssm/cores/core.h"
#include "convssm/cores/layer_stack.h"
#include "convssm/cores/layer_wrapper.h"

namespace convssm::cores {

struct ConvCellOptions {
  int64_t features = 0;  // channels of the frames and of the states
  int64_t layers = 1;
  int64_t kernel = 3;
  WrapperOptions wrapper = {};
  uint64_t seed = 0;

  // From {"features": 64, "layers": 8, ...}, the wrapper's options on the same level. `owner` names the core in errors.
  static ConvCellOptions from_json(const char* owner, const nlohmann::json& json);
};

class ConvCell : public torch::nn::Module {
 public:
  using States = std::vector<at::Tensor>;  // [B,P,H,W] each, undefined for zero

  // u [L*B,U,H,W], resets bool [L,1 or B,1,1,1] or undefined -> h of all frames [L*B,P,H,W], the states after the last.
  virtual std::pair<at::Tensor, States> forward(const at::Tensor& u, int64_t L, States states,
                                                const at::Tensor& resets) = 0;

  // One frame in a plan: u to h, on the states of the layer in the order of their names.
  virtual nn::Buffer plan(nn::FramePlan& plan, const nn::Buffer& u, const std::vector<nn::Buffer>& states) = 0;

 protected:
  // All states, zero in the samples that begin anew at frame k.
  static void forget(States& states, const at::Tensor& resets, int64_t k);

  // x [L*B,...] as L tensors [B,...], without a copy.
  static std::vector<at::Tensor> frames(const at::Tensor& x, int64_t L);
};

class ConvCellStackImpl : public Core {
 public:
  CoreOutput forward(const at::Tensor& x, const State& state = {}, const Timing& timing = {}) override;
  bool has_plan() const override { return true; }
  nn::Buffer plan(nn::FramePlan& plan, const nn::Buffer& x) override;
  const ConvCellOptions& options() const { return options_; }
  void train(bool on = true) override;

 protected:
  using MakeCell = std::shared_ptr<ConvCell> (*)(const ConvCellOptions& options, const Stream& stream);

  // State: `layers.<i>.<name>` for each of the state names.
  ConvCellStackImpl(const char* name, const ConvCellOptions& options, std::vector<std::string> state_names,
                    MakeCell make);

 private:
  struct Layer {
    std::shared_ptr<torch::nn::Module> module;  // of the two
    std::shared_ptr<ConvCell> cell;
    nn::Norm norm{nullptr};
  };
  StackLayer stack_layer(const Layer& layer, const at::Tensor& x) const;

  const char* name_;
  ConvCellOptions options_;
  std::vector<std::string> state_names_;
  std::vector<Layer> layers_;
  nn::FiniteCheck finite_;
};

}  // namespace convssm::cores
