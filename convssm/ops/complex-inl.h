// Loads, stores and arithmetic of complex numbers in float64 vectors, from and to float32 or float64 arrays; included once per
// instruction set (no #pragma once: Highway's toggle below lets the file be read again for each of them).
#if defined(CONVSSM_OPS_COMPLEX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVSSM_OPS_COMPLEX_INL
#undef CONVSSM_OPS_COMPLEX_INL
#else
#define CONVSSM_OPS_COMPLEX_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Narrow = hn::Rebind<float, D>;

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const double* x) {
  return hn::LoadU(d, x);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* x) {
  return hn::PromoteTo(d, hn::LoadU(Narrow<D>(), x));
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, double* x) {
  hn::StoreU(v, d, x);
}
template <class D>
HWY_INLINE void store(D, hn::Vec<D> v, float* x) {
  hn::StoreU(hn::DemoteTo(Narrow<D>(), v), Narrow<D>(), x);
}

template <class D>
struct Complex {
  hn::Vec<D> re, im;
};

template <class D>
HWY_INLINE Complex<D> load_pairs(D d, const double* x) {
  Complex<D> z;
  hn::LoadInterleaved2(d, x, z.re, z.im);
  return z;
}
template <class D>
HWY_INLINE Complex<D> load_pairs(D d, const float* x) {
  hn::Vec<Narrow<D>> re, im;
  hn::LoadInterleaved2(Narrow<D>(), x, re, im);
  return {hn::PromoteTo(d, re), hn::PromoteTo(d, im)};
}
template <class D>
HWY_INLINE void store_pairs(D d, const Complex<D>& z, double* x) {
  hn::StoreInterleaved2(z.re, z.im, d, x);
}
template <class D>
HWY_INLINE void store_pairs(D, const Complex<D>& z, float* x) {
  hn::StoreInterleaved2(hn::DemoteTo(Narrow<D>(), z.re), hn::DemoteTo(Narrow<D>(), z.im), Narrow<D>(), x);
}

template <class D>
HWY_INLINE Complex<D> multiply(const Complex<D>& x, const Complex<D>& y) {
  return {hn::NegMulAdd(x.im, y.im, hn::Mul(x.re, y.re)), hn::MulAdd(x.re, y.im, hn::Mul(x.im, y.re))};
}

// conj(x) y, which is what the gradient of a product with x takes.
template <class D>
HWY_INLINE Complex<D> multiply_conj(const Complex<D>& x, const Complex<D>& y) {
  return {hn::MulAdd(x.im, y.im, hn::Mul(x.re, y.re)), hn::NegMulAdd(x.im, y.re, hn::Mul(x.re, y.im))};
}

template <class D>
HWY_INLINE Complex<D> scale(const Complex<D>& x, hn::Vec<D> s) {
  return {hn::Mul(x.re, s), hn::Mul(x.im, s)};
}

template <class D>
HWY_INLINE Complex<D> add(const Complex<D>& x, const Complex<D>& y) {
  return {hn::Add(x.re, y.re), hn::Add(x.im, y.im)};
}

template <class D>
HWY_INLINE Complex<D> divide(const Complex<D>& x, const Complex<D>& y) {
  const auto square = hn::MulAdd(y.re, y.re, hn::Mul(y.im, y.im));
  return scale(multiply_conj(y, x), hn::Div(hn::Set(D(), 1.0), square));
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#endif
