// Sums of pixel differences over a frame, for one frame after the other. Inside metrics/ only.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <numeric>

#include "convssm/metrics/frames.h"

namespace convssm::metrics {

// sum_i f(x_i - y_i) in double. Independent sums let the compiler use vectors without changing the order of additions
// from run to run.
template <typename T, typename F>
double sum_of_differences(const T* x, const T* y, int64_t size, F f) {
  constexpr int64_t lanes = 8;
  std::array<double, lanes> sums{};
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      sums[static_cast<size_t>(lane)] += f(static_cast<double>(x[i + lane]) - static_cast<double>(y[i + lane]));
    }
  }
  for (; i < size; ++i) sums[0] += f(static_cast<double>(x[i]) - static_cast<double>(y[i]));
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// For every pair of frames of T: finish(sum of f over its pixels), float64 of the leading sizes.
template <typename T, typename F, typename G>
at::Tensor for_each_frame(const FramePairs& pairs, F f, G finish) {
  at::Tensor out = at::empty(pairs.leading, at::kDouble);
  const T* x = pairs.truth.data_ptr<T>();
  const T* y = pairs.forecast.data_ptr<T>();
  double* values = out.data_ptr<double>();
  const int64_t size = pairs.frame();
  at::parallel_for(0, pairs.frames, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values[i] = finish(sum_of_differences(x + i * size, y + i * size, size, f));
  });
  return out;
}

inline double squared(double d) { return d * d; }

}  // namespace convssm::metrics
