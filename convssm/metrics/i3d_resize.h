// From the frames of a clip to what I3D reads: 224 x 224 pixels in [-1,1].
//   2 resize(255 x) / 255 - 1, bilinear, without antialiasing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convssm::metrics {

constexpr int64_t i3d_size = 224;

// Where output pixel i reads, of n pixels; between pixels linearly, beyond the last pixel its value.
enum class I3dResize {
  tensorflow1,  // i n/224: tf.image.resize_bilinear of TensorFlow 1, in the FVD authors' code
  half_pixel,   // (i + 1/2) n/224 - 1/2: TensorFlow 2 and PyTorch's align_corners=False, in most later ports
};

// Throws Error(usage) unless clip is [T,C,H,W] with C 1 or 3, uint8 or float32 in [0,1].
void check_i3d_clip(const at::Tensor& clip);

// frames [T,C,H,W] as above -> [C,T,224,224] float32.
at::Tensor i3d_frames(const at::Tensor& frames, I3dResize resize);

}  // namespace convssm::metrics
