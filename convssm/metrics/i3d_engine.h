// The layers of I3D on frames kept in blocks of channels, [C/b,T,H,W,b]: a range of channels is one block of memory, and a
// branch of an Inception block can write straight into the block's output. In oneDNN (i3d_engine_dnnl.cpp) with the b of
// the CPU's vectors, the layout of its fastest kernels; in libtorch (i3d_engine_torch.cpp), where that has a oneDNN of its
// own, with b = 1. Not for several threads at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "convssm/metrics/i3d_layout.h"

namespace convssm::metrics {

// Channels of a block on this CPU.
int64_t i3d_block();

// The next multiple of a block.
int64_t i3d_padded(int64_t channels);

class I3dEngine {
 public:
  I3dEngine();
  ~I3dEngine();

  // One frame each of zeros (convolution) or nothing (maximum) before and behind the given frames.
  struct Pads {
    int64_t front = 0, back = 0;
  };

  class Convolution {
   public:
    // kernel [O,I,k,k,k], bias [O]; O a multiple of the block, I too or 1 or 3: then frames are [I,T,H,W].
    Convolution(I3dEngine& engine, const at::Tensor& kernel, const at::Tensor& bias, int64_t stride);
    Convolution(Convolution&&) noexcept;
    Convolution& operator=(Convolution&&) noexcept;
    ~Convolution();

    // ReLU(conv(x) + bias). x and out contiguous; out may be a range of the channels of a larger tensor.
    void run(const at::Tensor& x, Pads time, const at::Tensor& out);
    at::Tensor run(const at::Tensor& x, Pads time);

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };

  class MaxPool {
   public:
    MaxPool(I3dEngine& engine, const I3dPool& pool);
    MaxPool(MaxPool&&) noexcept;
    MaxPool& operator=(MaxPool&&) noexcept;
    ~MaxPool();

    at::Tensor run(const at::Tensor& x, Pads time);

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace convssm::metrics
