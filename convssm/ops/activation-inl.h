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

// exp(-x^2 / 2), zero far out.
template <class D, class V>
HWY_INLINE V bell(D d, V x) {
  using T = hn::TFromD<D>;
  const V exponent = hn::Mul(hn::Mul(x, x), hn::Set(d, T{-0.5}));
  return hn::Exp(d, hn::Max(exponent, hn::Set(d, sizeof(T) == 4 ? T{-104} : T{-706})));
}

// The normal distribution function. With z = |x| / sqrt(2), half of erfc(z) is on the side of zero, and exp(z^2) erfc(z) is
// smooth in t = 1 / (1 + z/2): a Chebyshev series on [0,1], of which float32 needs the first terms.
template <class D, class V>
HWY_INLINE V normal_share(D d, V x, V bell_of_x) {
  using T = hn::TFromD<D>;
  static constexpr double series[] = {
      0.37737609962585948406,     0.48250911965068073706,     0.1223245953309770375,       0.017831149719276793765,
      0.00032117365249440625701,  -0.00035039525647960462896, -0.000022438806506213465171, 0.000010537433119358824427,
      5.6713311326647479222e-7,   -4.2976815765457843431e-7,  5.1049525214089703687e-9,    1.8899699322344860841e-8,
      -2.2427555302488591012e-9,  -6.8552542948534647552e-10, 2.1487960117359168642e-10,   5.5154104719376187838e-12,
      -1.3477500640509276217e-11, 2.0863846732700514846e-12,  4.4818076938413215739e-13,   -2.2684554340236135687e-13,
      1.85003472259613458e-14,    1.1501862964686020686e-14,  -4.0115402271621319068e-15,  1.4092248269113488534e-16,
      2.6992881706678798551e-16,  -8.1712993559695614121e-17};
  constexpr int terms = sizeof(T) == 4 ? 11 : 26;
  const V one = hn::Set(d, T{1});
  const V t = hn::Div(one, hn::MulAdd(hn::Abs(x), hn::Set(d, T(0.35355339059327376220)), one));
  const V twice = hn::Sub(hn::Mul(t, hn::Set(d, T{4})), hn::Set(d, T{2}));  // 2 s, s = 2 t - 1
  V b = hn::Set(d, T(series[terms - 1])), after = hn::Zero(d);
  for (int k = terms - 2; k > 0; --k) {  // Clenshaw's recurrence
    const V next = hn::MulAdd(twice, b, hn::Sub(hn::Set(d, T(series[k])), after));
    after = b;
    b = next;
  }
  const V half = hn::Set(d, T{0.5});
  const V sum = hn::MulAdd(hn::Mul(half, twice), b, hn::Sub(hn::Set(d, T(series[0])), after));
  const V beyond = hn::Mul(hn::Mul(half, sum), bell_of_x);
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(one, beyond), beyond);
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
  if constexpr (activation == Activation::gelu_erf) return hn::Mul(x, normal_share(d, x, bell(d, x)));
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
  if constexpr (activation == Activation::gelu_erf) {
    const V q = bell(d, x);
    return hn::MulAdd(hn::Mul(x, hn::Set(d, T(0.39894228040143267794))), q, normal_share(d, x, q));
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
    case Activation::gelu_erf:
      return run(std::integral_constant<Activation, Activation::gelu_erf>());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#endif
