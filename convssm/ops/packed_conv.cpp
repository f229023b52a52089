#include "convssm/ops/packed_conv.h"

#include <ATen/Parallel.h>

#include "convssm/ops/activation_kernels.h"
#include "convssm/ops/check.h"
#include "convssm/ops/conv_kernel.h"

namespace convssm::ops {
namespace {

constexpr int64_t kGrain = 4096;  // values: less is not worth a second thread

ConvShape checked(const ConvShape& s) {
  require("packed_conv", s.in > 0 && s.out > 0 && s.kernel > 0 && s.height > 0 && s.width > 0,
          "sizes must be positive, got in {}, out {}, kernel {}, frames of {} x {}", s.in, s.out, s.kernel, s.height,
          s.width);
  return s;
}

}  // namespace

void apply_epilogue(float* y, int64_t size, const ConvEpilogue& e) {
  if (e.add == nullptr && e.activation == Activation::identity) return;
  at::parallel_for(0, size, kGrain, [&](int64_t begin, int64_t end) {
    const float* add = e.add == nullptr ? nullptr : e.add + begin;
    activate_loop(ActivateLoop<float>{e.activation, y + begin, add, nullptr, y + begin, end - begin});
  });
}

PackedConv::PackedConv(const ConvShape& shape, const float* weight, const float* bias)
    : shape_(checked(shape)), kernel_(make_direct_conv(shape, weight, bias)) {}

PackedConv::PackedConv(const ConvShape& shape, const float* weight, const float* bias, const ConvInputRange& input)
    : shape_(checked(shape)), kernel_(make_int8_conv(shape, weight, bias, input)) {}

PackedConv::~PackedConv() = default;
PackedConv::PackedConv(PackedConv&&) noexcept = default;
PackedConv& PackedConv::operator=(PackedConv&&) noexcept = default;

size_t PackedConv::scratch_bytes(int64_t frames) const { return kernel_->scratch_bytes(frames); }

void PackedConv::run(const float* x, float* y, int64_t frames, void* scratch, const ConvEpilogue& epilogue) const {
  kernel_->run(x, y, frames, scratch, epilogue);
}

}  // namespace convssm::ops
