// Compiled once per instruction set by Highway; the best one is picked at run time.
// A frame stays in the second-level cache over the passes: sums, squares around the mean, result.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "convssm/ops/norm_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/group_norm_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/activation-inl.h"
#include "convssm/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

// Per-channel sums over pixels of term(d, pixel row, c), in short runs of T, collected in double.
template <typename T, class Term>
HWY_INLINE void channel_sums(int64_t pixels, int64_t channels, T* run, double* sums, const Term& term) {
  constexpr int64_t kRun = 32;
  std::fill(sums, sums + channels, 0.0);
  for (int64_t first = 0; first < pixels; first += kRun) {
    std::fill(run, run + channels, T{0});
    for (int64_t p = first; p < std::min(pixels, first + kRun); ++p) {
      for_channels<T>(channels, [&](auto d, int64_t c) HWY_ATTR {
        hn::StoreU(hn::Add(hn::LoadU(d, run + c), term(d, p * channels + c, c)), d, run + c);
      });
    }
    for (int64_t c = 0; c < channels; ++c) sums[c] += static_cast<double>(run[c]);
  }
}

inline double group_sum(const double* sums, int64_t group, int64_t width) {
  double total = 0;
  for (int64_t c = group * width; c < (group + 1) * width; ++c) total += sums[c];
  return total;
}

// mean and rstd of every group.
template <typename T>
void statistics(const GroupNormFrame<T>& f, double* sums) {
  const int64_t width = f.channels / f.groups;
  const double count = static_cast<double>(width * f.pixels);
  T* run = f.scratch;
  T* means = f.scratch + f.channels;
  channel_sums(f.pixels, f.channels, run, sums,
               [&](auto d, int64_t i, int64_t) HWY_ATTR { return hn::LoadU(d, f.x + i); });
  for (int64_t group = 0; group < f.groups; ++group) f.mean[group] = group_sum(sums, group, width) / count;
  for (int64_t c = 0; c < f.channels; ++c) means[c] = static_cast<T>(f.mean[c / width]);
  channel_sums(f.pixels, f.channels, run, sums, [&](auto d, int64_t i, int64_t c) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, f.x + i), hn::LoadU(d, means + c));
    return hn::Mul(centred, centred);
  });
  for (int64_t group = 0; group < f.groups; ++group) {
    f.rstd[group] = 1.0 / std::sqrt(group_sum(sums, group, width) / count + f.eps);
  }
}

template <typename T>
void spread(const GroupNormFrame<T>& f, T* means, T* scale) {
  const int64_t width = f.channels / f.groups;
  for (int64_t c = 0; c < f.channels; ++c) {
    means[c] = static_cast<T>(f.mean[c / width]);
    scale[c] = static_cast<T>(f.rstd[c / width] * static_cast<double>(f.weight[c]));
  }
}

// z = scale (x - mean) + bias: subtracted first, so that a large mean costs no digits.
template <class D, typename T>
HWY_INLINE hn::Vec<D> affine(D d, const GroupNormFrame<T>& f, hn::Vec<D> centred, const T* scale, int64_t c) {
  return hn::MulAdd(centred, hn::LoadU(d, scale + c), hn::LoadU(d, f.bias + c));
}

template <Activation activation, typename T>
void forward(const GroupNormFrame<T>& f) {
  T* means = f.scratch;
  T* scale = f.scratch + f.channels;
  spread(f, means, scale);
  for (int64_t p = 0; p < f.pixels; ++p) {
    for_channels<T>(f.channels, [&](auto d, int64_t c) HWY_ATTR {
      const auto centred = hn::Sub(hn::LoadU(d, f.x + p * f.channels + c), hn::LoadU(d, means + c));
      hn::StoreU(activation_value<activation>(d, affine(d, f, centred, scale, c)), d, f.out + p * f.channels + c);
    });
  }
}

// Writes dz = g * activation'(z) to out, sums it and dz * (x - mean) per channel.
template <Activation activation, typename T>
void backward_sums(const GroupNormBackwardFrame<T>& f, double* dz_sums, double* dz_x_sums) {
  T* means = f.scratch;
  T* scale = f.scratch + f.channels;
  T* run = f.scratch + 2 * f.channels;
  spread(f, means, scale);
  channel_sums(f.pixels, f.channels, run, dz_sums, [&](auto d, int64_t i, int64_t c) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, f.x + i), hn::LoadU(d, means + c));
    const auto slope = activation_slope<activation>(d, affine(d, f, centred, scale, c));
    const auto dz = hn::Mul(hn::LoadU(d, f.g + i), slope);
    hn::StoreU(dz, d, f.out + i);
    return dz;
  });
  channel_sums(f.pixels, f.channels, run, dz_x_sums, [&](auto d, int64_t i, int64_t c) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, f.out + i), hn::Sub(hn::LoadU(d, f.x + i), hn::LoadU(d, means + c)));
  });
}

// dx = rstd (w dz - A/n - xhat B/n) with A = sum of w dz and B = sum of w dz xhat over the group of n values.
// `means` and `scale` are left by backward_sums.
template <typename T>
void backward_result(const GroupNormBackwardFrame<T>& f, const double* dz_sums, const double* dz_x_sums) {
  const int64_t width = f.channels / f.groups;
  const double n = static_cast<double>(width * f.pixels);
  const T* means = f.scratch;
  const T* scale = f.scratch + f.channels;
  T* by_x = f.scratch + 2 * f.channels;
  T* constant = f.scratch + 3 * f.channels;
  for (int64_t group = 0; group < f.groups; ++group) {
    const double rstd = f.rstd[group];
    double a = 0, b = 0;
    for (int64_t c = group * width; c < (group + 1) * width; ++c) {
      a += static_cast<double>(f.weight[c]) * dz_sums[c];
      b += static_cast<double>(f.weight[c]) * dz_x_sums[c] * rstd;
      f.grad_bias[c] += dz_sums[c];
      f.grad_weight[c] += dz_x_sums[c] * rstd;
    }
    std::fill(by_x + group * width, by_x + (group + 1) * width, static_cast<T>(-rstd * rstd * b / n));
    std::fill(constant + group * width, constant + (group + 1) * width, static_cast<T>(-rstd * a / n));
  }
  for (int64_t p = 0; p < f.pixels; ++p) {
    for_channels<T>(f.channels, [&](auto d, int64_t c) HWY_ATTR {
      const int64_t i = p * f.channels + c;
      const auto centred = hn::Sub(hn::LoadU(d, f.x + i), hn::LoadU(d, means + c));
      const auto rest = hn::MulAdd(centred, hn::LoadU(d, by_x + c), hn::LoadU(d, constant + c));
      hn::StoreU(hn::MulAdd(hn::LoadU(d, f.out + i), hn::LoadU(d, scale + c), rest), d, f.out + i);
    });
  }
}

template <typename T>
void forward_any(const GroupNormFrame<T>& f) {
  std::vector<double> sums(f.channels);
  statistics(f, sums.data());
  with_activation(f.activation, [&](auto activation) { forward<activation()>(f); });
}

template <typename T>
void backward_any(const GroupNormBackwardFrame<T>& f) {
  double* dz_sums = f.sums;
  double* dz_x_sums = f.sums + f.channels;
  with_activation(f.activation, [&](auto activation) { backward_sums<activation()>(f, dz_sums, dz_x_sums); });
  backward_result(f, dz_sums, dz_x_sums);
}

void GroupNormFloat(const GroupNormFrame<float>& f) { forward_any(f); }
void GroupNormDouble(const GroupNormFrame<double>& f) { forward_any(f); }
void GroupNormBackwardFloat(const GroupNormBackwardFrame<float>& f) { backward_any(f); }
void GroupNormBackwardDouble(const GroupNormBackwardFrame<double>& f) { backward_any(f); }

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(GroupNormFloat);
HWY_EXPORT(GroupNormDouble);
HWY_EXPORT(GroupNormBackwardFloat);
HWY_EXPORT(GroupNormBackwardDouble);

void group_norm_frame(const GroupNormFrame<float>& frame) { HWY_DYNAMIC_DISPATCH(GroupNormFloat)(frame); }
void group_norm_frame(const GroupNormFrame<double>& frame) { HWY_DYNAMIC_DISPATCH(GroupNormDouble)(frame); }
void group_norm_backward_frame(const GroupNormBackwardFrame<float>& frame) {
  HWY_DYNAMIC_DISPATCH(GroupNormBackwardFloat)(frame);
}
void group_norm_backward_frame(const GroupNormBackwardFrame<double>& frame) {
  HWY_DYNAMIC_DISPATCH(GroupNormBackwardDouble)(frame);
}

}  // namespace convssm::ops
#endif  // HWY_ONCE
