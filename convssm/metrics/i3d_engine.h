// The layers of I3D in oneDNN, for a user of libtorch's memory and threads. Between layers frames are kept in blocks of
// channels, [C/b,T,H,W,b] with the b of the CPU's vectors: the layout of oneDNN's fastest kernels, in which a range of
// channels is one block of memory and a branch of an Inception block can write straight into the block's output.
// Not for several threads at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <dnnl.hpp>
#include <map>
#include <unordered_map>
#include <vector>

#include "convssm/metrics/i3d_layout.h"

namespace convssm::metrics {

// Channels of a block on this CPU: 16 with AVX-512, else 8.
int64_t i3d_block();

// The next multiple of a block.
int64_t i3d_padded(int64_t channels);

class I3dEngine {
 public:
  I3dEngine();

  // One frame each of zeros (convolution) or nothing (maximum) before and behind the given frames.
  struct Pads {
    int64_t front = 0, back = 0;
  };

  // A oneDNN primitive for frames of one size, kept: to make one takes about as long as to run it.
  struct Plan {
    dnnl::primitive primitive;
    dnnl::memory::desc source, target, weights, scratch;
    std::vector<int64_t> out;  // [C/b,T,H,W,b]
    bool slow = false;         // oneDNN has only its reference code for this CPU
  };
  using Plans = std::map<std::array<int64_t, 5>, Plan>;

  class Convolution {
   public:
    // kernel [O,I,k,k,k], bias [O]; O a multiple of the block, I too or 1 or 3: then frames are [I,T,H,W].
    Convolution(I3dEngine& engine, const at::Tensor& kernel, const at::Tensor& bias, int64_t stride);

    // ReLU(conv(x) + bias). x and out contiguous; out may be a range of the channels of a larger tensor.
    void run(const at::Tensor& x, Pads time, const at::Tensor& out);
    at::Tensor run(const at::Tensor& x, Pads time);

   private:
    const Plan& plan(const at::Tensor& x, Pads time);
    void pack(const dnnl::memory::desc& layout);
    void run_in_libtorch(const at::Tensor& x, Pads time, const at::Tensor& out);

    I3dEngine& engine_;
    int64_t out_, kernel_, stride_;
    at::Tensor kernel_values_, bias_values_;
    at::Tensor packed_;            // the kernel as oneDNN wants it
    dnnl::memory weights_, bias_;  // in the memory of those
    Plans plans_;
  };

  class MaxPool {
   public:
    MaxPool(I3dEngine& engine, const I3dPool& pool) : engine_(engine), pool_(pool) {}
    at::Tensor run(const at::Tensor& x, Pads time);

   private:
    const Plan& plan(const at::Tensor& x, Pads time);

    I3dEngine& engine_;
    I3dPool pool_;
    Plans plans_;
  };

 private:
  void execute(const Plan& plan, const at::Tensor& x, const at::Tensor& out,
               std::unordered_map<int, dnnl::memory> arguments);

  dnnl::engine engine_;
  dnnl::stream stream_;
  at::Tensor scratch_;
};

}  // namespace convssm::metrics
