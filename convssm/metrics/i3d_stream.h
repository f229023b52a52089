// A chain of layers over time, fed window by window. Each layer keeps the last frames of its input that its next
// outputs read, and pads only at the true ends of the clip: the outputs are those of the whole clip at once, in memory
// that does not depend on its length.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace convssm::metrics {

struct TimeKernel {
  int64_t size, stride;  // SAME padding
};

class I3dStream {
 public:
  // out = run(layer, x, front, back): x [.,T,...], so many frames of padding before and behind it.
  using Run = std::function<at::Tensor(size_t layer, const at::Tensor& x, int64_t front, int64_t back)>;
  using Sink = std::function<void(const at::Tensor&)>;

  // `frames` is the length of the whole clip.
  I3dStream(const std::vector<TimeKernel>& layers, int64_t frames, Run run, Sink sink);

  // The next frames of the clip, time in dimension 1. The sink gets what follows from them; all, after the last frame.
  void push(at::Tensor frames) { advance(0, std::move(frames)); }

 private:
  struct Layer {
    TimeKernel kernel;
    int64_t frames, outputs, padding;  // of the whole clip; padding before the first frame
    at::Tensor held;                   // frames [first, first + held.size(1))
    int64_t first = 0, next = 0;       // next output

    int64_t begin(int64_t output) const { return output * kernel.stride - padding; }
    int64_t ready(int64_t end) const;
  };

  void advance(size_t index, at::Tensor x);

  std::vector<Layer> layers_;
  Run run_;
  Sink sink_;
};

}  // namespace convssm::metrics
