// The nonlinear block behind a ConvSSM layer, frame by frame on y [N,C,H,W]. With act, GN = GroupNorm, LN = LayerNorm:
//   resnet       act(y + Conv(act(GN(Conv(act(GN(y)))))))
//   standard     act(GN(y))                              (the layer adds D * u to y before)
//   half_glu     v sigmoid(Dense(v)),  v = gelu(LN(y))
//   diag_resnet  act(y + act(GN(Conv(act(GN(y))))))
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <string>

#include "convssm/nn/modules.h"

namespace convssm::nn {

class FramePlan;
struct Buffer;

enum class BlockKind { resnet, standard, half_glu, diag_resnet };

const char* name(BlockKind kind);
BlockKind parse_block_kind(const std::string& text);

struct BlockOptions {
  BlockKind kind = BlockKind::resnet;
  int64_t channels = 0;
  int64_t kernel = 3;
  int64_t groups = 32;
  ops::Activation activation = ops::Activation::gelu;
  bool squeeze_excite = false;
};

// Scales every channel by a gate from its mean over the frame: x sigmoid(up(relu(down(mean)))), hidden max(C/16, 4).
class SqueezeExciteImpl : public torch::nn::Module {
 public:
  SqueezeExciteImpl(int64_t channels, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);
  void plan(FramePlan& plan, Buffer x);  // in place

 private:
  Dense down_, up_;
};
TORCH_MODULE(SqueezeExcite);

class ActivationBlockImpl : public torch::nn::Module {
 public:
  ActivationBlockImpl(const BlockOptions& options, const Stream& stream);
  at::Tensor forward(const at::Tensor& y);
  Buffer plan(FramePlan& plan, Buffer y);

 private:
  at::Tensor resnet(const at::Tensor& y);
  at::Tensor half_glu(const at::Tensor& y);
  Buffer plan_resnet(FramePlan& plan, Buffer y);
  Buffer plan_half_glu(FramePlan& plan, Buffer y);

  BlockOptions options_;
  Norm norm_{nullptr}, norm1_{nullptr}, norm2_{nullptr};
  Conv conv1_{nullptr}, conv2_{nullptr};
  Dense dense_{nullptr};
  SqueezeExcite se_{nullptr};
};
TORCH_MODULE(ActivationBlock);

}  // namespace convssm::nn
