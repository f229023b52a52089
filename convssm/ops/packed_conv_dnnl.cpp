// Convolutions in float32 by oneDNN's direct kernels, for every shape that Winograd does not take; a 1x1 kernel is a
// matrix product there. The bias is oneDNN's, the rest of the epilogue is a pass of its own over y. And its convolutions of
// bytes.
#include <vector>

#include "convssm/ops/conv_kernel.h"
#include "convssm/ops/dnnl_conv.h"

namespace convssm::ops {
namespace {

DnnlConvSpec direct_spec(const ConvShape& shape) {
  const int64_t before = (shape.kernel - 1) / 2;
  return {.shape = shape, .before = before, .after = shape.kernel - 1 - before};
}

class DirectConv : public ConvKernel {
 public:
  DirectConv(const ConvShape& shape, const float* weight, const float* bias)
      : frame_size_(shape.out * shape.height * shape.width), conv_(direct_spec(shape), weight, bias) {}

  size_t scratch_bytes(int64_t frames) override { return conv_.scratch_bytes(frames); }

  void run(const float* x, float* y, int64_t frames, void* scratch, const ConvEpilogue& epilogue) override {
    conv_.run(x, y, frames, scratch);
    apply_epilogue(y, frames * frame_size_, epilogue);
  }

 private:
  int64_t frame_size_;
  DnnlConv conv_;
};

class DnnlByteConv : public ByteConv {
 public:
  DnnlByteConv(const ConvShape& shape, const ByteWeights& weights)
      : conv_({.shape = shape, .data = dnnl::memory::data_type::u8, .scales = weights.scales}, weights.values.data(),
              weights.bias.data()) {}

  size_t scratch_bytes(int64_t frames) override { return conv_.scratch_bytes(frames); }
  void run(const uint8_t* q, float* y, int64_t frames, void* scratch) override { conv_.run(q, y, frames, scratch); }

 private:
  DnnlConv conv_;
};

}  // namespace

std::unique_ptr<ByteConv> make_byte_conv(const ConvShape& shape, const ByteWeights& weights) {
  return std::make_unique<DnnlByteConv>(shape, weights);
}

std::unique_ptr<ConvKernel> make_direct_conv(const ConvShape& shape, const float* weight, const float* bias) {
  const std::vector<float> zero(bias == nullptr ? shape.out : 0);
  return std::make_unique<DirectConv>(shape, weight, bias == nullptr ? zero.data() : bias);
}

}  // namespace convssm::ops
