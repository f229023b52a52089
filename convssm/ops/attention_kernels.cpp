// Compiled once per instruction set by Highway. Keys are turned first, so that scores of 16 keys are one vector; four queries
// share every load of keys and values.
#include "convssm/ops/attention_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/attention_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/activation-inl.h"
#include "convssm/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

constexpr int64_t kLanes = 16, kRows = 4;

int64_t Padded(int64_t keys) { return (keys + kLanes - 1) / kLanes * kLanes; }

// scores[r] of kRows queries, each `padded` long; those beyond the keys become very small.
void Scores(const AttentionHead& a, const float* const* q, const float* turned, int64_t padded, float* scores) {
  const hn::CappedTag<float, kLanes> d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, a.scale);
  for (int64_t j = 0; j < padded; j += N) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t c = 0; c < a.size; ++c) {
      const auto key = hn::LoadU(d, turned + c * padded + j);
      s0 = hn::MulAdd(hn::Set(d, q[0][c]), key, s0);
      s1 = hn::MulAdd(hn::Set(d, q[1][c]), key, s1);
      s2 = hn::MulAdd(hn::Set(d, q[2][c]), key, s2);
      s3 = hn::MulAdd(hn::Set(d, q[3][c]), key, s3);
    }
    hn::StoreU(hn::Mul(s0, scale), d, scores + j);
    hn::StoreU(hn::Mul(s1, scale), d, scores + padded + j);
    hn::StoreU(hn::Mul(s2, scale), d, scores + 2 * padded + j);
    hn::StoreU(hn::Mul(s3, scale), d, scores + 3 * padded + j);
  }
  for (int64_t r = 0; r < kRows; ++r) std::fill(scores + r * padded + a.keys, scores + (r + 1) * padded, -1e30f);
}

void Softmax(float* row, int64_t padded) {
  const hn::CappedTag<float, kLanes> d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  auto most = hn::LoadU(d, row);
  for (int64_t j = N; j < padded; j += N) most = hn::Max(most, hn::LoadU(d, row + j));
  most = hn::MaxOfLanes(d, most);
  auto sum = hn::Zero(d);
  for (int64_t j = 0; j < padded; j += N) {
    const auto e = hn::Exp(d, hn::Sub(hn::LoadU(d, row + j), most));
    hn::StoreU(e, d, row + j);
    sum = hn::Add(sum, e);
  }
  const auto share = hn::Div(hn::Set(d, 1.0f), hn::SumOfLanes(d, sum));
  for (int64_t j = 0; j < padded; j += N) hn::StoreU(hn::Mul(hn::LoadU(d, row + j), share), d, row + j);
}

void Head(const AttentionHead& a) {
  const int64_t padded = Padded(a.keys);
  float *turned = a.scratch, *weights = a.scratch + a.size * padded;
  for (int64_t c = 0; c < a.size; ++c) {
    for (int64_t j = 0; j < a.keys; ++j) turned[c * padded + j] = a.k[j * a.stride + c];
    std::fill(turned + c * padded + a.keys, turned + (c + 1) * padded, 0.0f);
  }
  for (int64_t i = 0; i < a.queries; i += kRows) {
    const int64_t rows = std::min(kRows, a.queries - i);
    const float* q[kRows];
    for (int64_t r = 0; r < kRows; ++r) q[r] = a.q + (i + std::min(r, rows - 1)) * a.stride;
    Scores(a, q, turned, padded, weights);
    for (int64_t r = 0; r < rows; ++r) Softmax(weights + r * padded, padded);
    for_channels<float>(a.size, [&](auto d, int64_t c) HWY_ATTR {
      auto y0 = hn::Zero(d), y1 = y0, y2 = y0, y3 = y0;
      for (int64_t j = 0; j < a.keys; ++j) {
        const auto value = hn::LoadU(d, a.v + j * a.stride + c);
        y0 = hn::MulAdd(hn::Set(d, weights[j]), value, y0);
        y1 = hn::MulAdd(hn::Set(d, weights[padded + j]), value, y1);
        y2 = hn::MulAdd(hn::Set(d, weights[2 * padded + j]), value, y2);
        y3 = hn::MulAdd(hn::Set(d, weights[3 * padded + j]), value, y3);
      }
      float* out = a.out + i * a.stride + c;
      hn::StoreU(y0, d, out);
      if (rows > 1) hn::StoreU(y1, d, out + a.stride);
      if (rows > 2) hn::StoreU(y2, d, out + 2 * a.stride);
      if (rows > 3) hn::StoreU(y3, d, out + 3 * a.stride);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(Head);

int64_t attention_scratch(int64_t keys, int64_t size) { return (keys + 15) / 16 * 16 * (size + 4); }

void attention_head(const AttentionHead& head) { HWY_DYNAMIC_DISPATCH(Head)(head); }

}  // namespace convssm::ops
#endif
