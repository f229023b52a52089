// A stride-1 SAME convolution whose weights are packed once, for running one frame after another: no tensors, no
// allocation of arrays per call. Frames are dense [frames,height,width,channels], 64-byte aligned.
// One object is for one thread at a time; it uses all threads itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "convssm/ops/activation_kind.h"

namespace convssm::ops {

// What runs the shapes that Winograd does not take: "oneDNN 2.6.1", or "libtorch's own".
std::string convolution_library();

struct ConvShape {
  int64_t in, out, kernel, height, width;  // an even kernel has the longer side of its padding at the end
};

// y = activation(conv + bias + add)
struct ConvEpilogue {
  const float* add = nullptr;  // of the shape of y, not y itself
  Activation activation = Activation::identity;
};

// The values that the input will have, per channel; those outside are cut off.
struct ConvInputRange {
  const float* low;   // [in]
  const float* high;  // [in]
};

class ConvKernel;

class PackedConv {
 public:
  // weight [out,in,kernel,kernel] dense, bias [out] or nullptr; both are copied.
  PackedConv(const ConvShape& shape, const float* weight, const float* bias);

  // In 8-bit integers: weights by a scale per output channel, inputs by a scale and an offset per input channel.
  PackedConv(const ConvShape& shape, const float* weight, const float* bias, const ConvInputRange& input);

  ~PackedConv();
  PackedConv(PackedConv&&) noexcept;
  PackedConv& operator=(PackedConv&&) noexcept;

  // Memory that run() needs for this many frames, 64-byte aligned. The first call for a number of frames prepares it.
  size_t scratch_bytes(int64_t frames) const;
  void run(const float* x, float* y, int64_t frames, void* scratch, const ConvEpilogue& epilogue = {}) const;

  const ConvShape& shape() const { return shape_; }

 private:
  ConvShape shape_;
  std::unique_ptr<ConvKernel> kernel_;
};

}  // namespace convssm::ops
