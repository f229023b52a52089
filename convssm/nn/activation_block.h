// The nonlinear block behind a ConvSSM layer, frame by frame on y [N,C,H,W]. With act, GN = GroupNorm, LN = LayerNorm:
//   resnet       act(y + Conv(act(GN(Conv(act(GN(y)))))))
//   standard     act(GN(y))                              (the layer adds D * u to y before)
//   half_glu     v sigmoid(Dense(v)),  v = gelu(LN(y))
//   diag_resnet  act(y + act(GN(Conv(act(GN(y))))))
//   sparse       resnet with every Conv a depthwise kernel and a pointwise convolution after it
//   convnext     y + g Dense(gelu_erf(Dense(LN(Depthwise(y))))),  4 C channels between the dense layers, g per channel
//   s4nd         p sigmoid(q),  (p, q) = Dense(gelu(K * y + D y)),  K[h,w] = K_h[h] K_w[w] of state spaces along both axes
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <string>

#include "convssm/nn/modules.h"

namespace convssm::nn {

class FramePlan;
struct Buffer;

enum class BlockKind { resnet, standard, half_glu, diag_resnet, sparse, convnext, s4nd };

const char* name(BlockKind kind);
BlockKind parse_block_kind(const std::string& text);

struct BlockOptions {
  BlockKind kind = BlockKind::resnet;
  int64_t channels = 0;
  int64_t kernel = 3;  // of resnet, diag_resnet and sparse
  int64_t groups = 32;
  ops::Activation activation = ops::Activation::gelu;  // of resnet, standard, diag_resnet and sparse
  bool squeeze_excite = false;                         // with resnet, standard and sparse
  int64_t depthwise_kernel = 7;                        // of convnext
  double layer_scale = 0.1;                            // of convnext: g at the start
  int64_t axis_states = 16;                            // of s4nd: real states per channel, axis and direction
};

// What every kind is; make_activation_block() knows them. A kind is a class in a file of nn/ with a line in activation_kinds.h.
class ActivationBlockImpl : public torch::nn::Module {
 public:
  at::Tensor forward(const at::Tensor& y);             // [N,C,H,W] -> [N,C,H,W]
  virtual Buffer plan(FramePlan& plan, Buffer y) = 0;  // the same numbers

 protected:
  virtual at::Tensor run(const at::Tensor& y) = 0;
};
TORCH_MODULE(ActivationBlock);

ActivationBlock make_activation_block(const BlockOptions& options, const Stream& stream);

}  // namespace convssm::nn
