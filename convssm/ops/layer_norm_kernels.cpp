// Compiled once per instruction set by Highway; the best one is picked at run time. Rows (the channels of one pixel)
// are independent, so a thread takes a run of them. A row stays in the first-level cache over its loops: sum, squares,
// result.
#include <cmath>
#include <type_traits>

#include "convssm/ops/norm_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/layer_norm_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

// The sum of term(d, c) over the channels: one vector of partial sums in a register, its lanes added at the end, the
// tail one by one.
template <typename T, class Term>
HWY_INLINE T row_sum(int64_t channels, const Term& term) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto total = hn::Zero(d);
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) total = hn::Add(total, term(d, c));
  T sum = hn::GetLane(hn::SumOfLanes(d, total));
  for (; c < channels; ++c) sum += hn::GetLane(term(one, c));
  return sum;
}

// Two loops over the row, mean and squares around it. In T: a row is short, and each lane sums only channels / lanes
// values.
template <typename T>
HWY_INLINE void row_statistics(const T* x, int64_t channels, double eps, T& mean, T& rstd) {
  const T count = static_cast<T>(channels);
  mean = row_sum<T>(channels, [&](auto d, int64_t c) HWY_ATTR { return hn::LoadU(d, x + c); }) / count;
  const T squares = row_sum<T>(channels, [&](auto d, int64_t c) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, x + c), hn::Set(d, mean));
    return hn::Mul(centred, centred);
  });
  rstd = T{1} / std::sqrt(squares / count + static_cast<T>(eps));
}

// Row by row: x + y (if there is a y) to `sum`, or to `out` where it is not kept; two loops of statistics; result. Only
// the first of these loops waits for memory, and only `out` (and `sum`) are written to it.
template <typename T>
void forward(const LayerNormRows<T>& r) {
  for (int64_t row = 0; row < r.rows; ++row) {
    const T* x = r.x + row * r.channels;
    T* out = r.out + row * r.channels;
    if (r.y != nullptr) {
      const T* y = r.y + row * r.channels;
      T* sum = r.sum != nullptr ? r.sum + row * r.channels : out;
      for_channels<T>(r.channels, [&](auto d, int64_t c) HWY_ATTR {
        hn::StoreU(hn::Add(hn::LoadU(d, x + c), hn::LoadU(d, y + c)), d, sum + c);
      });
      x = sum;
    }
    T mean, rstd;
    row_statistics(x, r.channels, r.eps, mean, rstd);
    for_channels<T>(r.channels, [&](auto d, int64_t c) HWY_ATTR {
      const auto normal = hn::Mul(hn::Sub(hn::LoadU(d, x + c), hn::Set(d, mean)), hn::Set(d, rstd));
      hn::StoreU(hn::MulAdd(normal, hn::LoadU(d, r.weight + c), hn::LoadU(d, r.bias + c)), d, out + c);
    });
  }
}

template <typename T>
void flush_sums(const LayerNormBackwardRows<T>& r) {
  for (int64_t c = 0; c < r.channels; ++c) {
    r.grad_weight[c] += static_cast<double>(r.scratch[c]);
    r.grad_bias[c] += static_cast<double>(r.scratch[r.channels + c]);
    r.scratch[c] = r.scratch[r.channels + c] = 0;
  }
}

// dx = rstd (dz - mean(dz) - xhat mean(dz xhat)),  dz = weight g
// Row by row: statistics again, the two means, then one loop that writes dx and adds to the sums over rows for weight
// and bias. These are two rows of T in the first-level cache, emptied into doubles every kRun rows.
template <typename T>
void backward(const LayerNormBackwardRows<T>& r) {
  constexpr int64_t kRun = 64;  // rows summed in T before the sums go to double
  const T count = static_cast<T>(r.channels);
  for (int64_t row = 0; row < r.rows; ++row) {
    const T* x = r.x + row * r.channels;
    const T* g = r.g + row * r.channels;
    T* out = r.out + row * r.channels;
    T* weight_sums = r.scratch;
    T* bias_sums = r.scratch + r.channels;
    T mean, rstd;
    row_statistics(x, r.channels, r.eps, mean, rstd);
    const T dz_mean =
        row_sum<T>(r.channels, [&](auto d, int64_t c)
                                   HWY_ATTR { return hn::Mul(hn::LoadU(d, g + c), hn::LoadU(d, r.weight + c)); }) /
        count;
    const T dz_x_mean = row_sum<T>(r.channels,
                                   [&](auto d, int64_t c) HWY_ATTR {
                                     const auto normal =
                                         hn::Mul(hn::Sub(hn::LoadU(d, x + c), hn::Set(d, mean)), hn::Set(d, rstd));
                                     return hn::Mul(hn::Mul(hn::LoadU(d, g + c), hn::LoadU(d, r.weight + c)), normal);
                                   }) /
                        count;
    for_channels<T>(r.channels, [&](auto d, int64_t c) HWY_ATTR {
      const auto normal = hn::Mul(hn::Sub(hn::LoadU(d, x + c), hn::Set(d, mean)), hn::Set(d, rstd));
      const auto grad = hn::LoadU(d, g + c);
      const auto centred = hn::Sub(hn::Mul(grad, hn::LoadU(d, r.weight + c)), hn::Set(d, dz_mean));
      hn::StoreU(hn::Mul(hn::Set(d, rstd), hn::NegMulAdd(normal, hn::Set(d, dz_x_mean), centred)), d, out + c);
      hn::StoreU(hn::MulAdd(grad, normal, hn::LoadU(d, weight_sums + c)), d, weight_sums + c);
      hn::StoreU(hn::Add(grad, hn::LoadU(d, bias_sums + c)), d, bias_sums + c);
    });
    if (row % kRun == kRun - 1) flush_sums(r);
  }
  flush_sums(r);
}

void LayerNormFloat(const LayerNormRows<float>& r) { forward(r); }
void LayerNormDouble(const LayerNormRows<double>& r) { forward(r); }
void LayerNormBackwardFloat(const LayerNormBackwardRows<float>& r) { backward(r); }
void LayerNormBackwardDouble(const LayerNormBackwardRows<double>& r) { backward(r); }

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(LayerNormFloat);
HWY_EXPORT(LayerNormDouble);
HWY_EXPORT(LayerNormBackwardFloat);
HWY_EXPORT(LayerNormBackwardDouble);

void layer_norm_rows(const LayerNormRows<float>& rows) { HWY_DYNAMIC_DISPATCH(LayerNormFloat)(rows); }
void layer_norm_rows(const LayerNormRows<double>& rows) { HWY_DYNAMIC_DISPATCH(LayerNormDouble)(rows); }
void layer_norm_backward_rows(const LayerNormBackwardRows<float>& rows) {
  HWY_DYNAMIC_DISPATCH(LayerNormBackwardFloat)(rows);
}
void layer_norm_backward_rows(const LayerNormBackwardRows<double>& rows) {
  HWY_DYNAMIC_DISPATCH(LayerNormBackwardDouble)(rows);
}

}  // namespace convssm::ops
#endif  // HWY_ONCE
