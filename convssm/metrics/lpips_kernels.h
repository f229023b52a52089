// The parts of LPIPS that libtorch does slowly, for float32 frames whose channels lie together ([height,width,channels]).
// Raw pointers only; checked by the caller.
#pragma once

#include <cstdint>

namespace convssm::metrics {

struct LpipsFeatures {
  const float* x;  // [pixels,channels]
  const float* y;
  const float* weight;  // [channels]
  int64_t pixels, channels;
};

// The sum over pixels of sum_c weight_c (x_c/(|x| + 1e-10) - y_c/(|y| + 1e-10))^2.
double lpips_sum(const LpipsFeatures& features);

struct MaxPool {
  const float* x;  // [height,width,channels]
  float* out;      // [out_height,out_width,channels]
  int64_t height, width, channels;
  int64_t out_height, out_width;
  int64_t kernel;
};

// Maxima of kernel x kernel windows at every second row and column; a window that leaves the frame is cut off.
void max_pool(const MaxPool& pool);

struct ReluConcat {
  const float* first;   // [pixels,channels]
  const float* second;  // [pixels,channels]
  float* out;           // [pixels,2 channels]
  int64_t pixels, channels;
};

// out = max(0, (first, second))
void relu_concat(const ReluConcat& concat);

}  // namespace convssm::metrics
