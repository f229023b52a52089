// Activations and their derivatives as vector functions, included once per instruction set (no #pragma once: Highway's
// toggle below lets the file be read again for each of them).
#if defined(CONVSSM_OPS_ACTIVATION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVSSM_OPS_ACTIVATION_INL
#undef CONVSSM_OPS_ACTIVATION_INL
#else
#define CONVSSM_OPS_ACTIVATION_INL
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "convssm/ops/activation_kind.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 1 / (1 + exp(-x)); the bound keeps exp inside its range, where it may already be infinite.
template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, T{1});
  const V least = hn::Set(d, sizeof(T) == 4 ? T{-104} : T{-706});
  return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(hn::Max(x, least)))));
}

// gelu(x) = x sigmoid(2 u),  u = sqrt(2/pi) (x + 0.044715 x^3)
template <class D, class V>
HWY_INLINE V gelu_gate(D d, V x) {
  using T = hn::TFromD<D>;
  const V square = hn::Mul(x, x);
  const V inner = hn::MulAdd(hn::Set(d, T(0.044715 * 1.5957691216057308)), square, hn::Set(d, T(1.5957691216057308)));
  return sigmoid(d, hn::Mul(x, inner));
}

template <Activation activation, class D, class V>
HWY_INLINE V activation_value(D d, V x) {
  using T = hn::TFromD<D>;
  if constexpr (activation == Activation::relu) return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  if constexpr (activation == Activation::gelu) return hn::Mul(x, gelu_gate(d, x));
  if constexpr (activation == Activation::swish) return hn::Mul(x, sigmoid(d, x));
  if constexpr (activation == Activation::elu) {
    const V below = hn::Expm1(d, hn::Max(hn::Min(x, hn::Zero(d)), hn::Set(d, T{-80})));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x);  // this way round NaN stays NaN
  }
  if constexpr (activation == Activation::quick_gelu) {
    return hn::Mul(x, sigmoid(d, hn::Mul(x, hn::Set(d, T(1.702)))));
  }
  return x;
}

template <Activation activation, class D, class V>
HWY_INLINE V activation_slope(D d, V x) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, T{1});
  if constexpr (activation == Activation::relu) return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), one);
  if constexpr (activation == Activation::gelu) {
    const V near = hn::Max(hn::Min(x, hn::Set(d, T{50})), hn::Set(d, T{-50}));  // 0 or 1 beyond; x^3 may overflow there
    const V s = gelu_gate(d, near);
    const V square = hn::Mul(near, near);
    const V inner =
        hn::MulAdd(hn::Set(d, T(3 * 0.044715 * 1.5957691216057308)), square, hn::Set(d, T(1.5957691216057308)));
    return hn::MulAdd(hn::Mul(hn::Mul(s, hn::Sub(one, s)), near), inner, s);
  }
  if constexpr (activation == Activation::swish) {
    const V s = sigmoid(d, x);
    return hn::MulAdd(hn::Mul(s, hn::Sub(one, s)), x, s);
  }
  if constexpr (activation == Activation::quick_gelu) {
    const V scaled = hn::Mul(x, hn::Set(d, T(1.702)));
    const V s = sigmoid(d, scaled);
    return hn::MulAdd(hn::Mul(s, hn::Sub(one, s)), scaled, s);
  }
  if constexpr (activation == Activation::elu) {
    const V below = hn::Exp(d, hn::Max(hn::Min(x, hn::Zero(d)), hn::Set(d, T{-80})));
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), one, below);
  }
  return one;
}

// Calls run with the activation as a compile-time constant.
template <class Run>
HWY_INLINE void with_activation(Activation activation, const Run& run) {
  switch (activation) {
    case Activation::identity:
      return run(std::integral_constant<Activation, Activation::identity>());
    case Activation::relu:
      return run(std::integral_constant<Activation, Activation::relu>());
    case Activation::gelu:
      return run(std::integral_constant<Activation, Activation::gelu>());
    case Activation::swish:
      return run(std::integral_constant<Activation, Activation::swish>());
    case Activation::elu:
      return run(std::integral_constant<Activation, Activation::elu>());
    case Activation::quick_gelu:
      return run(std::integral_constant<Activation, Activation::quick_gelu>());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#endif
