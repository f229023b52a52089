// The kinds of activation blocks, each made by a function of its file; for activation_block.cpp alone.
#pragma once

#include "convssm/nn/activation_block.h"

namespace convssm::nn {

std::shared_ptr<ActivationBlockImpl> make_residual_block(const BlockOptions& options,
                                                         const Stream& stream);  // resnet, diag_resnet, sparse
std::shared_ptr<ActivationBlockImpl> make_pixel_block(const BlockOptions& options,
                                                      const Stream& stream);  // standard, half_glu
std::shared_ptr<ActivationBlockImpl> make_convnext_block(const BlockOptions& options, const Stream& stream);
std::shared_ptr<ActivationBlockImpl> make_s4nd_block(const BlockOptions& options, const Stream& stream);

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

}  // namespace convssm::nn
