// Encoder and decoder of the VQ-GAN, frame by frame, with the parameter names of the public layout (taming):
//   VqEncoder  Conv -> per level: blocks x (ResBlock, attention where asked), Down but after the last -> middle -> GN, swish, Conv
//   VqDecoder  Conv -> middle -> per level from the last: (blocks+1) x (ResBlock, attention), Up but at the first -> GN, swish, Conv
// Down pads right and bottom by one and takes a 3x3 convolution of stride 2; Up repeats every pixel four times before a 3x3
// convolution. Frames of any size that 2^(levels-1) divides.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "convssm/nn/vq_blocks.h"

namespace convssm::nn {

struct VqCoderOptions {
  int64_t channels = 3;                          // of the frames
  int64_t features = 128;                        // `ch`
  std::vector<int64_t> multipliers = {1, 2, 4};  // `ch_mult`: features of each level; each further one halves the frame
  int64_t blocks = 2;                            // per level; the decoder has one more
  std::vector<int64_t> attention = {16};         // heights of feature maps that are attended to, besides the middle
  int64_t latent = 256;                          // `z_channels`: between encoder and decoder
  int64_t groups = 32;                           // of the group norms; fewer where it does not divide the channels
  int64_t height = 64;                           // of the frames, which says where the attention is
  bool patches = false;                          // the encoder is that of patches (nn/patch_encoder.h)

  int64_t scale() const { return int64_t{1} << (multipliers.size() - 1); }  // frame size / latent size
  bool attends(size_t level) const;
};

// Error(usage), with `owner` in it, for options that make no network.
void check_vq_coder(const char* owner, const VqCoderOptions& options);

// The blocks of one resolution, with what changes the resolution after them.
class VqLevelImpl : public torch::nn::Module {
 public:
  enum class End { none, down, up };
  VqLevelImpl(int64_t in, int64_t out, int64_t blocks, bool attends, End end, int64_t groups, const Stream& stream);
  at::Tensor forward(const at::Tensor& x);
  Buffer plan(FramePlan& plan, Buffer x);

 private:
  std::vector<ResBlock> blocks_;
  std::vector<VqAttention> attention_;  // one for each block, or none
  End end_;
  Conv resample_{nullptr};
};
TORCH_MODULE(VqLevel);

class FrameEncoder : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x) = 0;  // [N,channels,H,W] -> [N,latent,H/scale,W/scale]
  virtual Buffer plan(FramePlan& plan, Buffer x) = 0;
};

std::shared_ptr<FrameEncoder> make_frame_encoder(const VqCoderOptions& options, const Stream& stream);

class VqEncoderImpl : public FrameEncoder {
 public:
  VqEncoderImpl(const VqCoderOptions& options, const Stream& stream);
  at::Tensor forward(const at::Tensor& x) override;
  Buffer plan(FramePlan& plan, Buffer x) override;

 private:
  Conv first_{nullptr}, last_{nullptr};
  std::vector<VqLevel> levels_;
  VqMiddle middle_{nullptr};
  Norm norm_{nullptr};
  int64_t groups_;
};
TORCH_MODULE(VqEncoder);

class VqDecoderImpl : public torch::nn::Module {
 public:
  VqDecoderImpl(const VqCoderOptions& options, const Stream& stream);
  at::Tensor forward(const at::Tensor& z);  // [N,latent,h,w] -> [N,channels,h*scale,w*scale]
  Buffer plan(FramePlan& plan, Buffer z);

  // The weight of the last convolution, at which losses are weighed against each other.
  const at::Tensor& last_weight() const { return last_->weight; }

 private:
  Conv first_{nullptr}, last_{nullptr};
  VqMiddle middle_{nullptr};
  std::vector<VqLevel> levels_;  // by their number: the first is the finest
  Norm norm_{nullptr};
  int64_t groups_;
};
TORCH_MODULE(VqDecoder);

}  // namespace convssm::nn
