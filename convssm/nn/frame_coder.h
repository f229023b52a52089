// The encoder and decoder of frames that all models share, applied frame by frame: ResNet blocks between resolutions.
//   ResBlock(d)   to d channels (nn/res_block.h), with elu and a residual of 0.1
//   Encoder       Conv -> ResBlock(d_0) -> per further depth: 2x2 average pool, blocks x ResBlock(d_i)
//   Decoder       Conv to d_0 -> per depth from the last to d_1: blocks x ResBlock, nearest 2x -> blocks x ResBlock(d_0)
//                 -> LayerNorm -> Dense
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "convssm/nn/res_block.h"

namespace convssm::nn {

inline constexpr ResBlockKind frame_block{ops::Activation::elu, 0.1, "shortcut", false};

struct CoderOptions {
  std::vector<int64_t> depths = {64, 128, 256};  // channels, from the finest resolution to the coarsest
  int64_t blocks = 1;                            // ResNet blocks per resolution
  int64_t groups = 32;                           // of the group norms; fewer where it does not divide the channels

  // From {"depths": [64, 128], "blocks": 1, "groups": 32}; `owner` is named in errors. Unknown keys are errors.
  void read_from(const char* owner, const nlohmann::json& json);       // what is not there stays as it is
  int64_t scale() const { return int64_t{1} << (depths.size() - 1); }  // frame size / latent size
};

class EncoderImpl : public torch::nn::Module {
 public:
  EncoderImpl(int64_t in, const CoderOptions& options, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);  // [N,in,H,W] -> [N,d_n,H/scale,W/scale]; H and W multiples of the scale
  Buffer plan(FramePlan& plan, Buffer x, bool exact = false);  // exact: the first convolution is never in bytes

 private:
  Conv first_{nullptr};
  std::vector<std::vector<ResBlock>> levels_;
};
TORCH_MODULE(Encoder);

class DecoderImpl : public torch::nn::Module {
 public:
  DecoderImpl(int64_t in, int64_t out, const CoderOptions& options, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);  // [N,in,h,w] -> [N,out,h*scale,w*scale]
  Buffer plan(FramePlan& plan, Buffer x);
  Buffer plan(FramePlan& plan, Buffer x, Buffer beside);  // of the channels of both

 private:
  Buffer plan_levels(FramePlan& plan, Buffer h);

  Conv first_{nullptr};
  std::vector<std::vector<ResBlock>> levels_;  // from the coarsest
  Norm norm_{nullptr};
  Dense last_{nullptr};
};
TORCH_MODULE(Decoder);

}  // namespace convssm::nn
