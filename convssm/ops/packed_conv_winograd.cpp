// 3x3 convolutions by Winograd's algorithm, in float32 or in whole numbers. Packed weights are 4 times the size of the
// weights and read once per frame, so they lie in huge pages. Bias, sum and activation are fused into the transform of
// the output, while it is in registers.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "convssm/ops/conv_kernel.h"
#include "convssm/ops/huge_pages.h"
#include "convssm/ops/winograd.h"
#include "convssm/ops/winograd_int8.h"

namespace convssm::ops {
namespace {

WinogradShape with_frames(const ConvShape& s, int64_t frames) { return {frames, s.height, s.width, s.in, s.out}; }

WinogradWeights dense(const ConvShape& s, const float* weight) { return {weight, 9 * s.in, 9, 1}; }

std::vector<float> copied(const float* bias, int64_t size) {
  return bias == nullptr ? std::vector<float>() : std::vector<float>(bias, bias + size);
}

WinogradEpilogue with_bias(const std::vector<float>& bias, const ConvEpilogue& e) {
  return {bias.empty() ? nullptr : bias.data(), e.add, e.activation};
}

class WinogradConv : public ConvKernel {
 public:
  WinogradConv(const ConvShape& shape, const float* weight, const float* bias)
      : shape_(shape), bias_(copied(bias, shape.out)), packed_(winograd_packed_size(shape.in, shape.out)) {
    winograd_pack(dense(shape, weight), shape.in, shape.out, packed_.data());
  }

  size_t scratch_bytes(int64_t) override { return 0; }

  void run(const float* x, float* y, int64_t frames, void*, const ConvEpilogue& epilogue) override {
    winograd_forward(with_frames(shape_, frames), x, packed_.data(), with_bias(bias_, epilogue), y);
  }

 private:
  ConvShape shape_;
  std::vector<float> bias_;
  HugePages<float> packed_;
};

class WinogradInt8Conv : public ConvKernel {
 public:
  WinogradInt8Conv(const ConvShape& shape, const float* weight, const float* bias, const ConvInputRange& range)
      : shape_(shape), bias_(copied(bias, shape.out)) {
    std::vector<float> limits;
    for (int64_t c = 0; c < shape.in; ++c) limits.push_back(std::max(std::abs(range.low[c]), std::abs(range.high[c])));
    packed_ = winograd_int8_pack(dense(shape, weight), shape.in, shape.out, limits.data());
  }

  size_t scratch_bytes(int64_t) override { return 0; }

  void run(const float* x, float* y, int64_t frames, void*, const ConvEpilogue& epilogue) override {
    winograd_int8_forward(with_frames(shape_, frames), x, packed_, with_bias(bias_, epilogue), y);
  }

 private:
  ConvShape shape_;
  std::vector<float> bias_;
  WinogradInt8Weights packed_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_winograd_conv(const ConvShape& shape, const float* weight, const float* bias) {
  return std::make_unique<WinogradConv>(shape, weight, bias);
}

std::unique_ptr<ConvKernel> make_winograd_int8_conv(const ConvShape& shape, const float* weight, const float* bias,
                                                    const ConvInputRange& input) {
  return std::make_unique<WinogradInt8Conv>(shape, weight, bias, input);
}

}  // namespace convssm::ops
