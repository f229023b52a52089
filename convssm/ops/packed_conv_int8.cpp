// Convolutions in 8-bit integers. With q = round(x f_c + z_c) in [0,255] for input channel c and
// v = round(w / (f_c t_o)) for the weights of output o:
//   conv(x, w) = t_o (conv(q, v) - sum of v z_c),   exact but for the two roundings, also at the edges:
// the input is laid into a border of z_c, which stands for zero.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "convssm/ops/check.h"
#include "convssm/ops/conv_kernel.h"
#include "convssm/ops/quantize_kernels.h"

namespace convssm::ops {
namespace {

constexpr int64_t kPackedConvInt8Rows = 4;

constexpr int kMost = 127;

struct InputScale {
  std::vector<float> factor, offset;
};

// Zero is always a value of the range, so that the border is exact.
InputScale input_scale(const ConvShape& shape, const ConvInputRange& range) {
  InputScale scale;
  for (int64_t c = 0; c < shape.in; ++c) {
    const float low = std::min(range.low[c], 0.0f), high = std::max(range.high[c], 0.0f);
    const float width = high - low;
    scale.factor.push_back(width > 0 ? 255.0f / width : 1.0f);
    scale.offset.push_back(std::round(-low * scale.factor.back()));
  }
  return scale;
}

// The weights of one output, [in,area] as they stand before the quantized input.
class WeightRow {
 public:
  WeightRow(const ConvShape& shape, const float* weight, const InputScale& input)
      : area_(shape.kernel * shape.kernel), in_(shape.in), exact_(weight, weight + in_ * area_), values_(in_ * area_) {
    for (int64_t i = 0; i < in_ * area_; ++i) exact_[i] /= input.factor[i / area_];
    for (const float w : exact_) largest_ = std::max(largest_, std::abs(w));
  }

  // Rounds to steps of the scale with the least error; returns the scale. A fine step cuts the largest weights.
  float quantize() {
    if (largest_ == 0) return 1;
    float best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (const float limit : {64.0f, 76.0f, 90.0f, 104.0f, 116.0f, 127.0f, 145.0f}) {
      const double error = round_to(largest_ / limit);
      if (error < least) best = largest_ / limit;
      least = std::min(least, error);
    }
    round_to(best);
    return best;
  }

  const std::vector<int8_t>& values() const { return values_; }
  int64_t area() const { return area_; }

 private:
  // Returns the sum of squared errors.
  double round_to(float step) {
    for (size_t i = 0; i < exact_.size(); ++i) {
      const int v = static_cast<int>(std::lround(exact_[i] / step));
      values_[i] = static_cast<int8_t>(std::clamp(v, -kMost, kMost));
    }
    if (cut_) shorten_pairs();
    double error = 0;
    for (size_t i = 0; i < exact_.size(); ++i) {
      const double e = static_cast<double>(exact_[i]) - static_cast<double>(values_[i]) * static_cast<double>(step);
      error += e * e;
    }
    return error;
  }

  void shorten_pairs() {
    for (int64_t c = 0; c + 1 < in_; c += 2) {
      for (int64_t k = 0; k < area_; ++k) {
        int8_t& first = values_[c * area_ + k];
        int8_t& second = values_[(c + 1) * area_ + k];
        const int sum = first + second, excess = std::abs(sum) - 128;
        if ((first > 0) != (second > 0) || excess <= 0) continue;
        const int sign = sum > 0 ? 1 : -1;
        first = static_cast<int8_t>(first - sign * ((excess + 1) / 2));
        second = static_cast<int8_t>(second - sign * (excess / 2));
      }
    }
  }

  int64_t area_, in_;
  std::vector<float> exact_;
  std::vector<int8_t> values_;
  float largest_ = 0;
  bool cut_ = cuts_byte_sums();
};

ByteWeights quantize_weights(const ConvShape& shape, const float* weight, const float* bias, const InputScale& input) {
  ByteWeights result;
  for (int64_t o = 0; o < shape.out; ++o) {
    WeightRow row(shape, weight + o * shape.in * shape.kernel * shape.kernel, input);
    const float scale = row.quantize();
    double offset = 0;
    for (size_t i = 0; i < row.values().size(); ++i) {
      offset += static_cast<double>(row.values()[i]) * static_cast<double>(input.offset[i / row.area()]);
    }
    result.values.insert(result.values.end(), row.values().begin(), row.values().end());
    result.scales.push_back(scale);
    const double own = bias == nullptr ? 0 : static_cast<double>(bias[o]) / static_cast<double>(scale);
    result.bias.push_back(static_cast<float>(own - offset));
  }
  return result;
}

size_t rounded_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

class Int8Conv : public ConvKernel {
 public:
  Int8Conv(const ConvShape& shape, InputScale input, const ByteWeights& weights)
      : shape_(shape), input_(std::move(input)), conv_(make_byte_conv(shape, weights)) {
    for (const float z : input_.offset) zero_.push_back(static_cast<uint8_t>(z));
  }

  size_t scratch_bytes(int64_t frames) override { return bytes(frames) + conv_->scratch_bytes(frames); }

  void run(const float* x, float* y, int64_t frames, void* scratch, const ConvEpilogue& epilogue) override {
    auto* q = static_cast<uint8_t*>(scratch);
    at::parallel_for(0, frames * height(), kPackedConvInt8Rows, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) quantize_line(x, q, i / height(), i % height());
    });
    conv_->run(q, y, frames, q + bytes(frames));
    apply_epilogue(y, frames * shape_.out * shape_.height * shape_.width, epilogue);
  }

 private:
  int64_t height() const { return shape_.height + shape_.kernel - 1; }
  int64_t width() const { return shape_.width + shape_.kernel - 1; }
  size_t bytes(int64_t frames) const { return rounded_up(frames * height() * width() * shape_.in); }

  // Line `row` of the bordered frame.
  void quantize_line(const float* x, uint8_t* q, int64_t frame, int64_t row) const {
    const int64_t before = (shape_.kernel - 1) / 2, C = shape_.in, inside = row - before;
    uint8_t* line = q + (frame * height() + row) * width() * C;
    if (inside < 0 || inside >= shape_.height) return fill(line, width());
    fill(line, before);
    fill(line + (before + shape_.width) * C, width() - before - shape_.width);
    const float* values = x + (frame * shape_.height + inside) * shape_.width * C;
    quantize_rows({shape_.width, C, values, input_.factor.data(), input_.offset.data(), line + before * C});
  }

  void fill(uint8_t* out, int64_t pixels) const {
    for (int64_t p = 0; p < pixels; ++p) out = std::copy(zero_.begin(), zero_.end(), out);
  }

  ConvShape shape_;
  InputScale input_;
  std::vector<uint8_t> zero_;
  std::unique_ptr<ByteConv> conv_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_int8_conv(const ConvShape& shape, const float* weight, const float* bias,
                                           const ConvInputRange& range) {
  InputScale input = input_scale(shape, range);
  const ByteWeights weights = quantize_weights(shape, weight, bias, input);
  return std::make_unique<Int8Conv>(shape, std::move(input), weights);
}

}  // namespace convssm::ops
