// What frames are to FitVid: what its encoder sees of them, how wrong what its decoder says is, and what frame that is. Pixels, in
// [0,1] here as published, by a sigmoid and squared differences; or codes of a tokenizer, by logits and cross-entropy.
#pragma once

#include <memory>
#include <string>

#include "convssm/models/codes/code_input.h"
#include "convssm/models/codes/code_loss.h"
#include "convssm/models/fitvid/coder.h"
#include "convssm/models/frame_input.h"

namespace convssm::models::fitvid {

// A frame that was made, [B,C,H,W] in [-1,1], and what the encoder sees of it.
struct MadeFrame {
  at::Tensor frame, seen;
};

class FrameSide {
 public:
  virtual ~FrameSide() = default;

  virtual CoderFrames frames() const = 0;  // of what the encoder sees

  // What goes in of clips, and what is to be predicted: [B,T,...]. Error(usage) unless they are this model's.
  virtual at::Tensor inputs_of(const char* operation, const Clips& clips) const = 0;
  virtual at::Tensor targets_of(const Clips& clips, const at::Tensor& inputs) const = 0;

  virtual at::Tensor seen(const at::Tensor& inputs) = 0;  // [N,...] -> [N,C,H,W]

  // Of each frame, [N]: what the decoder says [N,C,H,W], targets [N,...]. `valid` like them: pixels that count.
  virtual at::Tensor errors(const at::Tensor& said, const at::Tensor& targets, const at::Tensor& valid) = 0;
  virtual std::string error_name() const = 0;

  // `random` [B,2] names the numbers that are drawn, if there are any (models/clip_random.h).
  virtual MadeFrame make(const at::Tensor& said, const at::Tensor& random) = 0;
  virtual bool draws() const = 0;
  virtual double* temperature_setting() { return nullptr; }  // of the draws, if they have one

  virtual void check_data(const data::DataFormat& data) const = 0;
  virtual const CodeInput* codes() const { return nullptr; }
};

struct CodeSideOptions {
  double label_smoothing = 0.01;
  SamplingOptions sampling;
};

std::unique_ptr<FrameSide> make_pixel_side(const PixelInput& pixels);
std::unique_ptr<FrameSide> make_code_side(const CodeInput& codes, const CodeSideOptions& options);

}  // namespace convssm::models::fitvid
