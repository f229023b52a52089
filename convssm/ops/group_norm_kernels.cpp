// Compiled once per instruction set by Highway; the best one is picked at run time.
// One thread has a whole frame, [pixels, channels]. Two passes over it, sums and result, of which the second finds the
// frame in the second-level cache if it fits. Groups only matter between the passes: sums are per channel.
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

constexpr int64_t kRun = 32;    // pixels summed in T before the sums go to double
constexpr int64_t kAtOnce = 4;  // pixels summed in registers before the sums go to memory

// Adds step's two terms over `pixels` pixels from `first` on to the rows `a` and `b`. step(d, i, c, x, y) adds those of
// value i, which is of channel c, to x and y. Channels outside, pixels inside: the two sums of a vector of channels are
// loaded once, take all the pixels in registers and are stored once, a quarter of the traffic with four pixels.
template <int64_t pixels, typename T, class Step>
HWY_INLINE void add_pixels(int64_t first, int64_t channels, T* a, T* b, const Step& step) {
  for_channels<T>(channels, [&](auto d, int64_t c) HWY_ATTR {
    auto x = hn::LoadU(d, a + c), y = hn::LoadU(d, b + c);
    for (int64_t p = 0; p < pixels; ++p) step(d, (first + p) * channels + c, c, x, y);
    hn::StoreU(x, d, a + c);
    hn::StoreU(y, d, b + c);
  });
}

// Per-channel sums over pixels of step's two terms, in short runs of T, collected in double. `runs`: 2 * channels.
// Loops: runs of kRun pixels, kAtOnce pixels of them, vectors of channels, those pixels. The frame is walked from front
// to back, four rows of channels side by side. `runs` (8 KiB for 1024 channels of float32) stays in the first-level
// cache; after a run it is added to the doubles, so that rounding errors grow with 32 and not with all pixels.
template <typename T, class Step>
HWY_INLINE void channel_sums(int64_t pixels, int64_t channels, T* runs, double* sums, const Step& step) {
  std::fill(sums, sums + 2 * channels, 0.0);
  for (int64_t first = 0; first < pixels; first += kRun) {
    std::fill(runs, runs + 2 * channels, T{0});
    const int64_t end = std::min(pixels, first + kRun);
    int64_t p = first;
    for (; p + kAtOnce <= end; p += kAtOnce) add_pixels<kAtOnce>(p, channels, runs, runs + channels, step);
    for (; p < end; ++p) add_pixels<1>(p, channels, runs, runs + channels, step);
    for (int64_t c = 0; c < 2 * channels; ++c) sums[c] += static_cast<double>(runs[c]);
  }
}

inline double group_sum(const double* sums, int64_t group, int64_t width) {
  double total = 0;
  for (int64_t c = group * width; c < (group + 1) * width; ++c) total += sums[c];
  return total;
}

// About the mean of every group: that of some pixels, for each of its channels.
template <typename T>
void sample_means(const GroupNormFrame<T>& f, T* means) {
  constexpr int64_t kSamples = 16;
  const int64_t width = f.channels / f.groups, step = std::max<int64_t>(f.pixels / kSamples, 1);
  for (int64_t group = 0; group < f.groups; ++group) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t p = 0; p < f.pixels; p += step, count += width) {
      for (int64_t c = 0; c < width; ++c) sum += static_cast<double>(f.x[p * f.channels + group * width + c]);
    }
    std::fill(means + group * width, means + (group + 1) * width, static_cast<T>(sum / static_cast<double>(count)));
  }
}

// mean and rstd of every group in one pass over the frame. Squares are summed around an estimate of the mean, so that a
// large one costs no digits, and corrected in double: s of n pixels miss the mean by at most sqrt(n/s) standard
// deviations.
template <typename T>
void statistics(const GroupNormFrame<T>& f, double* sums) {
  const int64_t width = f.channels / f.groups;
  const double count = static_cast<double>(width * f.pixels);
  T* shift = f.scratch;
  T* runs = f.scratch + 2 * f.channels;
  sample_means(f, shift);
  channel_sums(f.pixels, f.channels, runs, sums, [&](auto d, int64_t i, int64_t c, auto& sum, auto& squares) HWY_ATTR {
    const auto x = hn::Sub(hn::LoadU(d, f.x + i), hn::LoadU(d, shift + c));
    sum = hn::Add(sum, x);
    squares = hn::MulAdd(x, x, squares);
  });
  for (int64_t group = 0; group < f.groups; ++group) {
    const double offset = group_sum(sums, group, width) / count;
    const double square = group_sum(sums + f.channels, group, width) / count;
    f.mean[group] = static_cast<double>(shift[group * width]) + offset;
    f.rstd[group] = 1.0 / std::sqrt(std::max(square - offset * offset, 0.0) + f.eps);
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

// The second pass: pixel by pixel, vectors of channels inside. Mean, scale and bias of a group are spread over its
// channels first, so that the loop knows nothing of groups and loads them as rows, from the first-level cache.
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

// First pass of the backward. Writes dz = g * activation'(z) to out, sums it and dz * (x - mean) per channel. z is
// computed again from x, which is cheaper than to have kept it.
template <Activation activation, typename T>
void backward_sums(const GroupNormBackwardFrame<T>& f) {
  T* means = f.scratch;
  T* scale = f.scratch + f.channels;
  T* runs = f.scratch + 2 * f.channels;
  spread(f, means, scale);
  channel_sums(f.pixels, f.channels, runs, f.sums, [&](auto d, int64_t i, int64_t c, auto& sum, auto& by_x) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, f.x + i), hn::LoadU(d, means + c));
    const auto slope = activation_slope<activation>(d, affine(d, f, centred, scale, c));
    const auto dz = hn::Mul(hn::LoadU(d, f.g + i), slope);
    hn::StoreU(dz, d, f.out + i);
    sum = hn::Add(sum, dz);
    by_x = hn::MulAdd(dz, centred, by_x);
  });
}

// dx = rstd (w dz - A/n - xhat B/n) with A = sum of w dz and B = sum of w dz xhat over the group of n values. Second
// pass: with A and B known for each group this is scale dz + by_x (x - mean) + constant, three rows of factors and two
// multiply-adds per value, over dz in `out`. `means` and `scale` are left by backward_sums; the other two rows take the
// place of its partial sums.
template <typename T>
void backward_result(const GroupNormBackwardFrame<T>& f) {
  const double* dz_sums = f.sums;
  const double* dz_x_sums = f.sums + f.channels;
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
  std::vector<double> sums(2 * f.channels);
  statistics(f, sums.data());
  with_activation(f.activation, [&](auto activation) { forward<activation()>(f); });
}

template <typename T>
void backward_any(const GroupNormBackwardFrame<T>& f) {
  with_activation(f.activation, [&](auto activation) { backward_sums<activation()>(f); });
  backward_result(f);
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
