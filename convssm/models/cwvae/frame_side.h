// What frames are to CW-VAE: what its lowest level sees of them, how likely they are, and what it gives out. Pixels of a normal
// distribution around tanh(network), in [0,1] as published; or codes of a tokenizer, a categorical each.
#pragma once

#include <memory>

#include "convssm/models/codes/code_input.h"
#include "convssm/models/cwvae/layers.h"

namespace convssm::models::cwvae {

class FrameSide {
 public:
  virtual ~FrameSide() = default;

  virtual int64_t features() const = 0;  // E, of a frame

  // What goes in of clips, and what is to be predicted: [B,T,...]. Error(usage) unless they are this model's.
  virtual at::Tensor inputs_of(const char* operation, const Clips& clips) const = 0;
  virtual at::Tensor targets_of(const Clips& clips, const at::Tensor& inputs) const = 0;

  virtual at::Tensor features_of(const at::Tensor& inputs) = 0;  // [N,...] -> [N,E]

  // -log p of frames [N,...], of [z, h] of level 0 [N,D], summed over a frame: [N]. `valid` like the frames: pixels that count.
  virtual at::Tensor nll(const at::Tensor& outputs, const at::Tensor& targets, const at::Tensor& valid) = 0;

  virtual at::Tensor frames_of(const at::Tensor& outputs) = 0;  // [B,D] -> the most likely [B,C,H,W] in [-1,1]

  virtual void check_data(const data::DataFormat& data) const = 0;
  virtual const CodeInput* codes() const { return nullptr; }
};

struct PixelSideOptions {
  int64_t channels = 1, height = 64, width = 64, filters = 32;
  double sigma = 1;
};

// Both register `encoder` and `decoder` in the owner; `outputs` D.
std::unique_ptr<FrameSide> make_pixel_side(torch::nn::Module& owner, const PixelSideOptions& options, int64_t outputs,
                                           const Stream& stream);
std::unique_ptr<FrameSide> make_code_side(torch::nn::Module& owner, const CodeInput& codes, int64_t filters,
                                          int64_t outputs, const Stream& stream);

}  // namespace convssm::models::cwvae
