// Chooses the engine once, when the weights are packed: Winograd where the shape allows, else the
// library's (oneDNN, or libtorch where that has its own). In 8 bits the
// order turns around on machines with VNNI, where direct sums of bytes are the fastest.
#include "convssm/ops/packed_conv.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "convssm/ops/activation_kernels.h"
#include "convssm/ops/check.h"
#include "convssm/ops/conv_algorithm.h"
#include "convssm/ops/conv_kernel.h"
#include "convssm/ops/winograd_int8.h"

namespace convssm::ops {
namespace {

constexpr int64_t kPackedGrain = 4096;  // values: less is not worth a second thread

ConvShape checked(const ConvShape& s) {
  require("packed_conv", s.in > 0 && s.out > 0 && s.kernel > 0 && s.height > 0 && s.width > 0,
          "sizes must be positive, got in {}, out {}, kernel {}, frames of {} x {}", s.in, s.out, s.kernel, s.height,
          s.width);
  return s;
}

bool by_winograd(const ConvShape& s) { return s.kernel == 3 && chooses_winograd({1, s.height, s.width, s.in, s.out}); }

std::unique_ptr<ConvKernel> make_kernel(const ConvShape& shape, const float* weight, const float* bias) {
  return by_winograd(shape) ? make_winograd_conv(shape, weight, bias) : make_direct_conv(shape, weight, bias);
}

// Without instructions for products of bytes, direct sums of them are slower than Winograd's in 16 bits.
std::unique_ptr<ConvKernel> make_kernel(const ConvShape& shape, const float* weight, const float* bias,
                                        const ConvInputRange& input) {
  for (int64_t c = 0; c < shape.in; ++c) {
    require("packed_conv", std::isfinite(input.low[c]) && std::isfinite(input.high[c]),
            "the range of input channel {} must be finite, got {} to {}; the frames it was calibrated on hold NaN or "
            "infinity",
            c, input.low[c], input.high[c]);
  }
  const bool winograd = by_winograd(shape) && winograd_int8_takes(shape.in, shape.out) && !has_byte_products();
  return winograd ? make_winograd_int8_conv(shape, weight, bias, input) : make_int8_conv(shape, weight, bias, input);
}

}  // namespace

void apply_epilogue(float* y, int64_t size, const ConvEpilogue& e) {
  if (e.add == nullptr && e.activation == Activation::identity) return;
  at::parallel_for(0, size, kPackedGrain, [&](int64_t begin, int64_t end) {
    const float* add = e.add == nullptr ? nullptr : e.add + begin;
    activate_loop(ActivateLoop<float>{e.activation, y + begin, add, nullptr, y + begin, end - begin});
  });
}

PackedConv::PackedConv(const ConvShape& shape, const float* weight, const float* bias)
    : shape_(checked(shape)), kernel_(make_kernel(shape, weight, bias)) {}

PackedConv::PackedConv(const ConvShape& shape, const float* weight, const float* bias, const ConvInputRange& input)
    : shape_(checked(shape)), kernel_(make_kernel(shape, weight, bias, input)) {}

PackedConv::~PackedConv() = default;
PackedConv::PackedConv(PackedConv&&) noexcept = default;
PackedConv& PackedConv::operator=(PackedConv&&) noexcept = default;

size_t PackedConv::scratch_bytes(int64_t frames) const { return kernel_->scratch_bytes(frames); }

void PackedConv::run(const float* x, float* y, int64_t frames, void* scratch, const ConvEpilogue& epilogue) const {
  kernel_->run(x, y, frames, scratch, epilogue);
}

}  // namespace convssm::ops
