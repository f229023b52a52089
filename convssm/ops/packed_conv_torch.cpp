// Convolutions by libtorch's operations, where it has a oneDNN of its own (wheels): for every shape that Winograd does not
// take. A 1x1 kernel is a matrix product. In 8 bits there is none but Winograd's; other shapes stay in float32.
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

}  // namespace

std::string convolution_library() { return "libtorch's own"; }

bool has_byte_products() { return false; }

std::unique_ptr<ConvKernel> make_direct_conv(const ConvShape& shape, const float* weight, const float* bias) {
  return std::make_unique<TorchConv>(shape, weight, bias);
}

std::unique_ptr<ConvKernel> make_int8_conv(const ConvShape& shape, const float* weight, const float* bias,
                                           const ConvInputRange&) {
  return make_direct_conv(shape, weight, bias);
}

}  // namespace convssm::ops
