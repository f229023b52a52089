// An encoder of patches: the squares of scale x scale pixels become channels of one pixel, then 1x1 convolutions,
//   h = In(x),  `blocks` times h = h + W_2 swish(W_1 swish(h)),  Out(swish(h)).
// A latent pixel depends on its patch alone, so equal patches have equal codes, whatever is around them. The published encoder
// (nn/vq_coder.h) sees all of the frame, and gives one patch many codes; a model of codes has to learn which. The decoder is
// the published one: it sees all codes.
#pragma once

#include <vector>

#include "convssm/nn/vq_coder.h"

namespace convssm::nn {

class PatchEncoderImpl : public FrameEncoder {
 public:
  PatchEncoderImpl(const VqCoderOptions& options, const Stream& stream);
  at::Tensor forward(const at::Tensor& x) override;
  Buffer plan(FramePlan& plan, Buffer x) override;

 private:
  struct Block {
    Conv first, second;
  };
  size_t halvings_;
  Conv in_{nullptr}, out_{nullptr};
  std::vector<Block> blocks_;
};
TORCH_MODULE(PatchEncoder);

}  // namespace convssm::nn
