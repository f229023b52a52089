// Convolutions by libtorch's operations, where it has a oneDNN of its own (wheels): for every shape that Winograd does not
// take. A 1x1 kernel is a matrix product. Of bytes it has none: they are multiplied as float32, the same numbers but for the
// last digits of long sums, and not faster.
#include <ATen/ATen.h>

#include "convssm/ops/conv_kernel.h"

namespace convssm::ops {
namespace {

at::Tensor frames_of(const float* x, at::IntArrayRef sizes) { return at::from_blob(const_cast<float*>(x), sizes); }

class TorchConv : public ConvKernel {
 public:
  TorchConv(const ConvShape& shape, const float* weight, const float* bias)
      : shape_(shape),
        weight_(
            frames_of(weight, {shape.out, shape.in, shape.kernel, shape.kernel}).clone(at::MemoryFormat::ChannelsLast)),
        bias_(bias == nullptr ? at::zeros({shape.out}) : frames_of(bias, {shape.out}).clone()) {}

  size_t scratch_bytes(int64_t) override { return 0; }

  void run(const float* x, float* y, int64_t frames, void*, const ConvEpilogue& epilogue) override {
    const at::NoGradGuard no_grad;
    const at::Tensor in = frames_of(x, {frames, shape_.height, shape_.width, shape_.in});
    at::Tensor out = frames_of(y, {frames, shape_.height, shape_.width, shape_.out});
    if (shape_.kernel == 1) {
      at::Tensor rows = out.view({-1, shape_.out});
      at::addmm_out(rows, bias_, in.view({-1, shape_.in}), weight_.view({shape_.out, shape_.in}).t());
    } else {
      out.copy_(convolved(in.permute({0, 3, 1, 2})).permute({0, 2, 3, 1}));
    }
    apply_epilogue(y, out.numel(), epilogue);
  }

 private:
  // An even kernel has the longer side of its padding at the end.
  at::Tensor convolved(const at::Tensor& x) const {
    const int64_t before = (shape_.kernel - 1) / 2;
    if (shape_.kernel % 2 == 1) return at::conv2d(x, weight_, bias_, 1, before);
    return at::conv2d(at::constant_pad_nd(x, {before, before + 1, before, before + 1}), weight_, bias_);
  }

  ConvShape shape_;
  at::Tensor weight_, bias_;
};

class TorchByteConv : public ByteConv {
 public:
  TorchByteConv(const ConvShape& shape, const ByteWeights& w)
      : shape_(shape),
        weight_(at::tensor(w.values, at::kFloat).view({shape.out, shape.in, shape.kernel, shape.kernel})),
        bias_(at::tensor(w.bias)),
        scales_(at::tensor(w.scales)) {}

  size_t scratch_bytes(int64_t) override { return 0; }

  void run(const uint8_t* q, float* y, int64_t frames, void*) override {
    const at::NoGradGuard no_grad;
    const int64_t border = shape_.kernel - 1;
    const at::Tensor in = at::from_blob(const_cast<uint8_t*>(q),
                                        {frames, shape_.height + border, shape_.width + border, shape_.in}, at::kByte);
    const at::Tensor sums = at::conv2d(in.to(at::kFloat).permute({0, 3, 1, 2}), weight_, bias_);
    frames_of(y, {frames, shape_.height, shape_.width, shape_.out}).copy_(sums.permute({0, 2, 3, 1}) * scales_);
  }

 private:
  ConvShape shape_;
  at::Tensor weight_, bias_, scales_;
};

}  // namespace

std::string convolution_library() { return "libtorch's own"; }

bool has_byte_products() { return false; }

bool cuts_byte_sums() { return false; }

std::unique_ptr<ConvKernel> make_direct_conv(const ConvShape& shape, const float* weight, const float* bias) {
  return std::make_unique<TorchConv>(shape, weight, bias);
}

std::unique_ptr<ByteConv> make_byte_conv(const ConvShape& shape, const ByteWeights& weights) {
  return std::make_unique<TorchByteConv>(shape, weights);
}

}  // namespace convssm::ops
