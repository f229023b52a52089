// Compiled once per instruction set by Highway; the best one is picked at run time. In float64 between loads and stores, like
// pixel_steps_kernels.cpp.
#include "convssm/ops/liquid_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/liquid_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/complex-inl.h"
#include "convssm/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

// v = a_bar + l b.
template <class D, class Rows>
HWY_INLINE Complex<D> moved(D d, const Rows& rows, int64_t r, int64_t c) {
  const auto* b = rows.b + r * 2 * rows.P;
  const Complex<D> input{load(d, b + c), load(d, b + rows.P + c)};
  return add(load_pairs(d, rows.a_bar + 2 * c), multiply(load_pairs(d, rows.l + 2 * c), input));
}

template <class D>
HWY_INLINE hn::Vec<D> length(const Complex<D>& v) {
  return hn::Sqrt(hn::MulAdd(v.re, v.re, hn::Mul(v.im, v.im)));
}

template <typename T>
void liquid(const LiquidRows<T>& rows) {
  for (int64_t r = 0; r < rows.rows; ++r) {
    for_channels<double>(rows.P, [&](auto d, int64_t c) HWY_ATTR {
      using D = decltype(d);
      const Complex<D> v = moved(d, rows, r, c);
      const auto one = hn::Set(d, 1.0);
      store_pairs(d, scale(v, hn::Div(one, hn::Max(one, length(v)))), rows.a + r * 2 * rows.P + 2 * c);
    });
  }
}

// Where v is cut to the circle its radius has no gradient, and its angle has that of 1 / |v|.
template <typename T>
void liquid_backward(const LiquidBackwardRows<T>& rows) {
  const int64_t P = rows.P;
  for (int64_t r = 0; r < rows.rows; ++r) {
    for_channels<double>(P, [&](auto d, int64_t c) HWY_ATTR {
      using D = decltype(d);
      const Complex<D> v = moved(d, rows, r, c), g = load_pairs(d, rows.grad_a + r * 2 * P + 2 * c);
      const T* b = rows.b + r * 2 * P;
      const auto one = hn::Set(d, 1.0), size = length(v), inverse = hn::Div(one, hn::Max(one, size));
      const Complex<D> a = scale(v, inverse);
      const auto radial = hn::IfThenElseZero(hn::Gt(size, one), hn::Neg(multiply_conj(a, g).re));
      const Complex<D> gv = scale(add(g, scale(a, radial)), inverse);
      const Complex<D> gb = multiply_conj(load_pairs(d, rows.l + 2 * c), gv);
      const Complex<D> gl = multiply_conj(Complex<D>{load(d, b + c), load(d, b + P + c)}, gv);
      store(d, gb.re, rows.grad_b + r * 2 * P + c);
      store(d, gb.im, rows.grad_b + r * 2 * P + P + c);
      store_pairs(d, add(load_pairs(d, rows.grad_a_bar + 2 * c), gv), rows.grad_a_bar + 2 * c);
      store_pairs(d, add(load_pairs(d, rows.grad_l + 2 * c), gl), rows.grad_l + 2 * c);
    });
  }
}

void LiquidFloat(const LiquidRows<float>& rows) { liquid(rows); }
void LiquidDouble(const LiquidRows<double>& rows) { liquid(rows); }
void LiquidBackwardFloat(const LiquidBackwardRows<float>& rows) { liquid_backward(rows); }
void LiquidBackwardDouble(const LiquidBackwardRows<double>& rows) { liquid_backward(rows); }

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(LiquidFloat);
HWY_EXPORT(LiquidDouble);
HWY_EXPORT(LiquidBackwardFloat);
HWY_EXPORT(LiquidBackwardDouble);

void liquid_rows(const LiquidRows<float>& rows) { HWY_DYNAMIC_DISPATCH(LiquidFloat)(rows); }
void liquid_rows(const LiquidRows<double>& rows) { HWY_DYNAMIC_DISPATCH(LiquidDouble)(rows); }
void liquid_backward_rows(const LiquidBackwardRows<float>& rows) { HWY_DYNAMIC_DISPATCH(LiquidBackwardFloat)(rows); }
void liquid_backward_rows(const LiquidBackwardRows<double>& rows) { HWY_DYNAMIC_DISPATCH(LiquidBackwardDouble)(rows); }

}  // namespace convssm::ops
#endif  // HWY_ONCE
