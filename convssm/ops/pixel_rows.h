// Frames with complex coefficients for every pixel as rows of memory, for operations with kernels of their own: their layout,
// and how threads take them.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "convssm/ops/elementwise.h"

namespace convssm::ops {

constexpr int64_t kStatesPerTask = 1024;

inline int64_t pixels_of(const at::Tensor& b) { return b.size(2) * b.size(3); }

inline at::Tensor empty_pairs(const at::Tensor& b) {
  return at::empty({b.size(0), b.size(2), b.size(3), b.size(1)}, b.options().requires_grad(false));
}

// Rows of pairs [N,H,W,2P] as complex [N,P,H,W], and back.
inline at::Tensor as_complex(const at::Tensor& pairs) {
  const at::Tensor last = pairs.view({pairs.size(0), pairs.size(1), pairs.size(2), pairs.size(3) / 2, 2});
  return at::view_as_complex(last).permute({0, 3, 1, 2});
}

inline at::Tensor as_pairs(const at::Tensor& a) {
  return a.defined() ? at::view_as_real(a.resolve_conj().permute({0, 2, 3, 1}).contiguous()) : a;
}

inline at::Tensor channels_if_defined(const at::Tensor& x) { return x.defined() ? channels_together(x) : x; }

template <typename T>
const T* row_of(const at::Tensor& x, int64_t row, int64_t width) {
  return x.defined() ? static_cast<const T*>(x.data_ptr()) + row * width : nullptr;
}

template <typename T>
T* row_to(const at::Tensor& x, int64_t row, int64_t width) {
  return static_cast<T*>(x.data_ptr()) + row * width;
}

// run(frame, first, end) for ranges of rows that lie in one frame.
template <typename Run>
void for_pixel_rows(const at::Tensor& b, const Run& run) {
  const int64_t each = pixels_of(b), P = b.size(1) / 2;
  at::parallel_for(0, b.size(0) * each, std::max<int64_t>(kStatesPerTask / P, 1), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t frame = begin / each, last = std::min(end, (frame + 1) * each);
      run(frame, begin, last);
      begin = last;
    }
  });
}

}  // namespace convssm::ops
