// Compiled once per instruction set by Highway; the best one is picked at run time. The scan is bound by memory: one or
// two multiply-adds per value that is read and written. So the loops are laid out for the order of the memory traffic,
// and the form of the numbers is a template parameter, which leaves no branch inside.
#include "convssm/ops/scan_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/scan_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Access to the re and im parts of channel c.. of a row, in each form. Real and imaginary parts are two vectors in
// every form: `split` has them P apart, `complex` is taken apart when it is loaded and put together when it is stored,
// `real` has no imaginary part and the compiler drops what would use it. Whole vectors use tag D, tails CappedTag<1>.
template <ScanForm form, class D, typename T>
HWY_INLINE void load(D d, const T* row, int64_t P, int64_t c, hn::Vec<D>& re, hn::Vec<D>& im) {
  if constexpr (form == ScanForm::complex) {
    hn::LoadInterleaved2(d, row + 2 * c, re, im);
  } else {
    re = hn::LoadU(d, row + c);
    im = form == ScanForm::split ? hn::LoadU(d, row + P + c) : hn::Zero(d);
  }
}

template <ScanForm form, bool stream, class D, typename T>
HWY_INLINE void store(D d, T* row, int64_t P, int64_t c, hn::Vec<D> re, hn::Vec<D> im) {
  if constexpr (form == ScanForm::complex && stream) {
    HWY_ALIGN T pairs[2 * hn::MaxLanes(d)];  // streamed stores take whole vectors; these stay in registers
    hn::StoreInterleaved2(re, im, d, pairs);
    hn::Stream(hn::Load(d, pairs), d, row + 2 * c);
    hn::Stream(hn::Load(d, pairs + hn::Lanes(d)), d, row + 2 * c + hn::Lanes(d));
  } else if constexpr (form == ScanForm::complex) {
    hn::StoreInterleaved2(re, im, d, row + 2 * c);
  } else if constexpr (stream) {
    hn::Stream(re, d, row + c);
    if constexpr (form == ScanForm::split) hn::Stream(im, d, row + P + c);
  } else {
    hn::StoreU(re, d, row + c);
    if constexpr (form == ScanForm::split) hn::StoreU(im, d, row + P + c);
  }
}

// Asks for the same channels `distance` further: the next frame of a tile is too far away for the hardware to foresee,
// which follows streams within a page. By the time the tile's other rows are done it has arrived. Into the second-level
// cache: the first would not hold it until then, and has fewer requests under way at a time. May point outside of the
// array, where it does nothing.
template <ScanForm form, typename T>
HWY_INLINE void prefetch(const T* row, int64_t distance, int64_t P, int64_t c) {
  const auto address = reinterpret_cast<uintptr_t>(row) + static_cast<uintptr_t>(distance * int64_t{sizeof(T)});
  const auto at = [address](int64_t i) HWY_ATTR {
    return reinterpret_cast<const T*>(address + static_cast<uintptr_t>(i * int64_t{sizeof(T)}));
  };
  __builtin_prefetch(at(form == ScanForm::complex ? 2 * c : c), 0, 2);
  if constexpr (form == ScanForm::split) __builtin_prefetch(at(P + c), 0, 2);
}

constexpr ScanForm carry_form(ScanForm form) { return form == ScanForm::real ? ScanForm::real : ScanForm::split; }

// How a row of a lies: shared ones as the carry, those of single rows as tensors have them.
constexpr ScanForm a_form(ScanForm form, bool own_a) {
  return own_a && form != ScanForm::real ? ScanForm::complex : carry_form(form);
}

constexpr int64_t row_size(ScanForm form, int64_t P) { return form == ScanForm::real ? P : 2 * P; }

// One vector of channels of one row and frame: x = a * carry + b. Loads a, carry and b, one multiply-add (four for
// complex numbers), stores the carry and x. `store` and `stream` are the same for a whole tile, the test of t.store is
// predicted. With `own_a`, each row has its own coefficients, which come from memory as b does.
template <ScanForm form, bool own_a, bool stream, class D, typename T>
HWY_INLINE void forward_vector(D d, const ScanForwardTile<T>& t, const T* a, T* carry, const T* b, T* x, int64_t c) {
  constexpr ScanForm own = carry_form(form);
  hn::Vec<D> ar, ai, cr, ci, br, bi;
  load<a_form(form, own_a)>(d, a, t.P, c, ar, ai);
  if constexpr (own_a) prefetch<a_form(form, own_a)>(a, t.a_frame, t.P, c);
  load<own>(d, carry, t.P, c, cr, ci);
  load<form>(d, b, t.P, c, br, bi);
  prefetch<form>(b, t.frame, t.P, c);
  hn::Vec<D> xr = hn::MulAdd(ar, cr, br);
  hn::Vec<D> xi = bi;
  if constexpr (form != ScanForm::real) {
    xr = hn::NegMulAdd(ai, ci, xr);
    xi = hn::MulAdd(ar, ci, hn::MulAdd(ai, cr, bi));
  }
  store<own, false>(d, carry, t.P, c, xr, xi);
  if (t.store) store<form, stream>(d, x, t.P, c, xr, xi);
}

// Loops: frames, rows of the tile, vectors of channels. Time is outermost, so that b and x are walked in the order of
// memory, frame after frame, and each byte of them passes once; the state of the tile (about 32 KiB, scan_cpu.cpp) is
// the carry, which stays in the cache between frames. It does not stay in registers: that would need time innermost,
// and b would be read a vector per frame, a page apart. The recurrence costs no waiting either: neighbouring vectors
// are independent, and a carry is needed again only after the whole tile. Streamed stores do not read the lines of x
// first, which saves a third of the traffic; the fence at the end makes them visible to other threads. Tails are never
// streamed. Threads take tiles of their own.
template <ScanForm form, bool own_a, bool stream, typename T>
void forward(const ScanForwardTile<T>& t) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t row = row_size(form, t.P);
  const int64_t vectors_end = t.c0 + (t.c1 - t.c0) / lanes * lanes;
  for (int64_t k = t.k0; k < t.k1; ++k) {
    for (int64_t r = 0; r < t.rows; ++r) {
      const T* a = t.a + k * t.a_frame + r * t.a_row;
      const T* b = t.b + k * t.frame + r * row;
      T* x = t.x + k * t.frame + r * row;
      T* carry = t.carry + r * row;
      int64_t c = t.c0;
      for (; c < vectors_end; c += lanes) forward_vector<form, own_a, stream>(d, t, a, carry, b, x, c);
      for (; c < t.c1; ++c) forward_vector<form, own_a, false>(one, t, a, carry, b, x, c);
    }
  }
  if (stream) hwy::FlushStream();
}

// One row and frame of the adjoint. Of g, before and grad_a, nullptr is zero, zero and not wanted.
template <typename T>
struct AdjointRow {
  const T *a, *g, *before;
  T *carry, *mu, *grad_a;
};

// One vector of it: mu = carry + g, the gradient of b; mu conj(x before) is the gradient of the row's own coefficients,
// or is added to the partial sums of those that rows share; the carry becomes conj(a) mu for the frame before. What is
// read of the frame before this one is prefetched, as time runs backwards.
template <ScanForm form, bool own_a, bool stream, class D, typename T>
HWY_INLINE void backward_vector(D d, const ScanBackwardTile<T>& t, const AdjointRow<T>& row, int64_t c) {
  constexpr ScanForm own = carry_form(form), of_a = a_form(form, own_a);
  hn::Vec<D> ar, ai, mr, mi;
  load<of_a>(d, row.a, t.P, c, ar, ai);
  if constexpr (own_a) prefetch<of_a>(row.a, -t.a_frame, t.P, c);
  load<own>(d, row.carry, t.P, c, mr, mi);
  if (row.g != nullptr) {
    hn::Vec<D> gr, gi;
    load<form>(d, row.g, t.P, c, gr, gi);
    prefetch<form>(row.g, -t.frame, t.P, c);
    mr = hn::Add(mr, gr);
    mi = hn::Add(mi, gi);
  }
  if (t.store) store<form, stream>(d, row.mu, t.P, c, mr, mi);
  if (row.grad_a != nullptr) {
    hn::Vec<D> sr = hn::Zero(d), si = hn::Zero(d);
    if constexpr (!own_a) load<own>(d, row.grad_a, t.P, c, sr, si);
    if (row.before != nullptr) {
      hn::Vec<D> xr, xi;
      load<form>(d, row.before, t.P, c, xr, xi);
      prefetch<form>(row.before, -t.frame, t.P, c);
      sr = hn::MulAdd(mr, xr, sr);
      if constexpr (form != ScanForm::real) {
        sr = hn::MulAdd(mi, xi, sr);
        si = hn::NegMulAdd(mr, xi, hn::MulAdd(mi, xr, si));
      }
    }
    store<of_a, own_a && stream>(d, row.grad_a, t.P, c, sr, si);
  }
  hn::Vec<D> cr = hn::Mul(ar, mr);
  hn::Vec<D> ci = mi;
  if constexpr (form != ScanForm::real) {
    cr = hn::MulAdd(ai, mi, cr);
    ci = hn::NegMulAdd(ai, mr, hn::Mul(ar, mi));
  }
  store<own, false>(d, row.carry, t.P, c, cr, ci);
}

// Partial sums in T are short (`kFlushFrames` frames of one tile); the rest of the sum is in double. All rows of a tile
// add to one row of sums, which stays in the first-level cache.
constexpr int64_t kFlushFrames = 32;

template <ScanForm form, typename T>
void flush_partial_sums(const ScanBackwardTile<T>& t, int64_t k) {
  double* grad_a = t.grad_a + k * t.grad_a_frame;
  for (int64_t part = 0; part < (form == ScanForm::real ? 1 : 2); ++part) {
    for (int64_t c = part * t.P + t.c0; c < part * t.P + t.c1; ++c) {
      grad_a[c] += static_cast<double>(t.scratch[c]);
      t.scratch[c] = 0;
    }
  }
}

// Loops as in forward, with the frames from the last to the first. Coefficients that are the same for all frames have
// one row of gradients, added to every kFlushFrames frames; those per frame are added to at each frame.
template <ScanForm form, bool own_a, bool stream, typename T>
void backward(const ScanBackwardTile<T>& t) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t row = row_size(form, t.P);
  const int64_t vectors_end = t.c0 + (t.c1 - t.c0) / lanes * lanes;
  for (int64_t k = t.k1 - 1; k >= t.k0; --k) {
    const T* state_before = k > 0 ? t.x + (k - 1) * t.frame : t.x0;
    for (int64_t r = 0; r < t.rows; ++r) {
      const int64_t at = k * t.frame + r * row, at_a = k * t.a_frame + r * t.a_row;
      T* sums = t.grad_a == nullptr ? nullptr : t.scratch;
      if (own_a) sums = t.grad_a_rows == nullptr ? nullptr : t.grad_a_rows + at_a;
      const AdjointRow<T> of_row{t.a + at_a,
                                 t.g == nullptr ? nullptr : t.g + at,
                                 state_before == nullptr ? nullptr : state_before + r * row,
                                 t.carry + r * row,
                                 t.mu + at,
                                 sums};
      int64_t c = t.c0;
      for (; c < vectors_end; c += lanes) backward_vector<form, own_a, stream>(d, t, of_row, c);
      for (; c < t.c1; ++c) backward_vector<form, own_a, false>(one, t, of_row, c);
    }
    // Also where nothing was added at k itself: the frames after it may have left sums.
    const bool due = t.grad_a_frame != 0 || k % kFlushFrames == 0 || k == t.k0;
    if (!own_a && t.grad_a != nullptr && due) flush_partial_sums<form>(t, k);
  }
  if (stream) hwy::FlushStream();
}

template <bool own_a, bool stream, typename T>
void forward_form(const ScanForwardTile<T>& t) {
  if (t.form == ScanForm::split) return forward<ScanForm::split, own_a, stream>(t);
  if (t.form == ScanForm::complex) return forward<ScanForm::complex, own_a, stream>(t);
  forward<ScanForm::real, own_a, stream>(t);
}

template <bool own_a, bool stream, typename T>
void backward_form(const ScanBackwardTile<T>& t) {
  if (t.form == ScanForm::split) return backward<ScanForm::split, own_a, stream>(t);
  if (t.form == ScanForm::complex) return backward<ScanForm::complex, own_a, stream>(t);
  backward<ScanForm::real, own_a, stream>(t);
}

template <typename T>
void forward_tile(const ScanForwardTile<T>& t) {
  if (t.a_row != 0) return t.stream ? forward_form<true, true>(t) : forward_form<true, false>(t);
  t.stream ? forward_form<false, true>(t) : forward_form<false, false>(t);
}

template <typename T>
void backward_tile(const ScanBackwardTile<T>& t) {
  if (t.a_row != 0) return t.stream ? backward_form<true, true>(t) : backward_form<true, false>(t);
  t.stream ? backward_form<false, true>(t) : backward_form<false, false>(t);
}

void ScanForwardFloat(const ScanForwardTile<float>& t) { forward_tile(t); }
void ScanForwardDouble(const ScanForwardTile<double>& t) { forward_tile(t); }
void ScanBackwardFloat(const ScanBackwardTile<float>& t) { backward_tile(t); }
void ScanBackwardDouble(const ScanBackwardTile<double>& t) { backward_tile(t); }

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(ScanForwardFloat);
HWY_EXPORT(ScanForwardDouble);
HWY_EXPORT(ScanBackwardFloat);
HWY_EXPORT(ScanBackwardDouble);

void scan_forward_tile(const ScanForwardTile<float>& tile) { HWY_DYNAMIC_DISPATCH(ScanForwardFloat)(tile); }
void scan_forward_tile(const ScanForwardTile<double>& tile) { HWY_DYNAMIC_DISPATCH(ScanForwardDouble)(tile); }
void scan_backward_tile(const ScanBackwardTile<float>& tile) { HWY_DYNAMIC_DISPATCH(ScanBackwardFloat)(tile); }
void scan_backward_tile(const ScanBackwardTile<double>& tile) { HWY_DYNAMIC_DISPATCH(ScanBackwardDouble)(tile); }

}  // namespace convssm::ops
#endif  // HWY_ONCE
