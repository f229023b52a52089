// The I3D video network of the Frechet video distance: Inception-v1 with 3-D kernels on RGB frames, trained on
// Kinetics-400 from scratch (Carreira and Zisserman 2017; `rgb_scratch` of DeepMind's kinetics-i3d). A clip of any
// length gives the 400 class logits, averaged over time.
//   I3d net("i3d_rgb_scratch.safetensors");   at::Tensor features = net.logits(clip);   // [400]
// Time runs through the network in windows, each layer keeping the few frames that its next window needs: memory does
// not grow with the clip, nothing is computed twice, and the result does not depend on the window.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "convssm/metrics/i3d_resize.h"

namespace convssm::metrics {

struct I3dOptions {
  I3dResize resize = I3dResize::tensorflow1;
  int64_t window = 24;        // frames that enter the network at once: speed and memory, not the result
  std::string features = {};  // folder that keeps the logits of clips (feature_store.h); "": none
};

class I3d {
 public:
  // A safetensors file of the 230 tensors of the TensorFlow checkpoint, under their names (`RGB/inception_i3d/...`) and
  // in their layout. Error(data) names the file, the tensor, what was expected and what was found.
  explicit I3d(const std::string& weights, const I3dOptions& options = {});
  I3d(I3d&&) noexcept;
  I3d& operator=(I3d&&) noexcept;
  ~I3d();

  // clip [T,C,H,W], float32 in [0,1] or uint8, C 1 or 3, any H and W, T at least 10 -> [400] float32.
  // Grey counts as three equal channels. On all threads of libtorch; one call at a time.
  at::Tensor logits(const at::Tensor& clip) const;

 private:
  struct Network;
  std::unique_ptr<Network> network_;
};

// The last average pool of the network spans 2 steps of 8 frames; FVD is published for 10 frames and more.
constexpr int64_t i3d_fewest_frames = 10;

}  // namespace convssm::metrics
