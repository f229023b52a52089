// What the encoder of the pixel model sees of a frame, as channels side by side:
//   the channels of the frame that are not diagnostic; with a mask, pixels that were not measured as kFiller
//   with a mask, as many channels: 1 where the pixel was measured, 0 where it was not
//   with maps, those of the frame to come, and one channel: 1 where a map of the pixel is masked (NaN), and all are 0
// Maps are what is known of a frame in advance, so they stand beside the frame from which it is forecast.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace convssm::models::pixel {

struct EncoderInputOptions {
  int64_t channels = 1;            // of a frame
  std::vector<int64_t> seen = {};  // those that go in, in order; empty: all
  bool mask = false;
  int64_t maps = 0;
};

class EncoderInput {
 public:
  EncoderInput() = default;
  explicit EncoderInput(const EncoderInputOptions& options);  // Error(usage) if no channel is seen

  int64_t channels() const;  // that the encoder sees
  int64_t seen() const;      // of these, those of the frame
  bool masks() const { return options_.mask; }
  bool beside() const { return options_.mask || options_.maps > 0; }  // whether there is more than the frame

  // The channels of frames, or of their pixels' marks, that go in: [N,C,H,W] -> [N,seen(),H,W].
  at::Tensor seen_of(const at::Tensor& frames) const;

  // Frames [N,C,H,W], of their seen channels which pixels were measured, [N,seen(),H,W] (undefined: all), and the maps of
  // the frames to come, [N,M,H,W] (undefined: zeros) -> [N,channels(),H,W].
  at::Tensor join(const at::Tensor& frames, const at::Tensor& measured, const at::Tensor& maps) const;

 private:
  EncoderInputOptions options_;
};

}  // namespace convssm::models::pixel
