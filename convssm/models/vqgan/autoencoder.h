// The part of a VQ-GAN that runs: encoder, quantizer, decoder. A tokenizer, and what a model of codes freezes. Its parameters
// have the names of the public layout (taming): encoder.*, quant_conv.*, quantize.*, post_quant_conv.*, decoder.*.
// Frames of any size: they are padded inside by repeating their edge, and what is decoded is cropped.
// With the quantizer `kl` it is the autoencoder of latent diffusion (Rombach et al. 2022, arXiv 2112.10752): a continuous
// tokenizer, whose encoder puts out twice the `latent` channels.
// On the CPU frames are encoded and decoded one at a time by compiled plans: the codes of a clip are those of its pieces,
// bit by bit. On other devices, and while tensors are not float32, `images_at_once` frames go through the modules together.
#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "convssm/models/tokenizer.h"
#include "convssm/nn/quantizer.h"
#include "convssm/nn/vq_coder.h"

namespace convssm::models {

struct VqAutoencoderOptions {
  nn::VqCoderOptions coder;  // its height is that of the frames
  nn::QuantizerOptions quantizer;
  int64_t width = 64;  // of the frames
  int64_t images_at_once = 64;
};

class VqAutoencoder : public torch::nn::Module, public Tokenizer {
 public:
  VqAutoencoder(const VqAutoencoderOptions& options, const Stream& stream);
  ~VqAutoencoder() override;

  struct Output {
    at::Tensor frames;  // [N,C,H,W], not clipped
    nn::Quantized quantized;
  };
  Output forward(const at::Tensor& frames, const nn::QuantizerUse& use);  // [N,C,H,W] in [-1,1]

  at::Tensor encode(const at::Tensor& video) override;
  at::Tensor decode(const at::Tensor& codes) override;  // cut to [-1,1]
  CodeFormat codes() const override;
  bool continuous() const override { return quantize_->continuous(); }
  at::Tensor embed(const at::Tensor& codes) override { return quantize_->embed(codes); }
  int64_t features() const override { return quantize_->features(); }

  const nn::Quantizer& quantizer() const { return *quantize_; }
  const at::Tensor& last_weight() const { return decoder_->last_weight(); }
  const VqAutoencoderOptions& options() const { return options_; }

  // Plans hold copies of the weights: they are made anew when these have changed.
  void train(bool on = true) override;

 private:
  struct Plans;
  std::vector<int64_t> code_sizes() const;  // of a frame: h, w; of a continuous one features, h, w
  void check_codes(const at::Tensor& codes) const;
  at::Tensor features_of(const at::Tensor& frames);  // [N,C,H,W] -> [N,in_features,h,w] of the quantizer
  at::Tensor frames_of(const at::Tensor& q);         // [N,features,h,w] -> [N,C,H,W], cropped
  void check_video(const char* operation, const at::Tensor& video) const;
  bool takes_plans(const at::Tensor& x) const;
  Plans& plans();

  VqAutoencoderOptions options_;
  int64_t pad_height_, pad_width_;
  std::shared_ptr<nn::FrameEncoder> encoder_;
  nn::VqDecoder decoder_{nullptr};
  std::shared_ptr<nn::Quantizer> quantize_;
  nn::Conv quant_conv_{nullptr}, post_quant_conv_{nullptr};
  std::unique_ptr<Plans> plans_;
};

}  // namespace convssm::models
