// Compiled once per instruction set by Highway; the best one is picked at run time. Everything between loads and stores is
// float64, because the angle of a is the product of an eigenvalue of up to 1e5 and a step. The backward computes the
// coefficients again instead of keeping them: the exponential is cheaper than two arrays of the size of the states.
#include "convssm/ops/pixel_steps_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/pixel_steps_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/contrib/math/math-inl.h>

#include "convssm/ops/activation-inl.h"
#include "convssm/ops/complex-inl.h"
#include "convssm/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

// max(x, 0) + log(1 + exp(-|x|)).
template <class D, class V>
HWY_INLINE V softplus(D d, V x) {
  const V tail = hn::Exp(d, hn::Max(hn::Neg(hn::Abs(x)), hn::Set(d, -700.0)));
  return hn::Add(hn::Max(x, hn::Zero(d)), hn::Log1p(d, tail));
}

// The angle within half a turn of zero: 2 pi in two parts, so that the error stays that of the angle itself.
template <class D, class V>
HWY_INLINE V reduced(D d, V angle) {
  const V turns = hn::Round(hn::Mul(angle, hn::Set(d, 0.15915494309189535)));
  const V near = hn::NegMulAdd(turns, hn::Set(d, 6.283185307179586), angle);
  return hn::NegMulAdd(turns, hn::Set(d, 2.4492935982947064e-16), near);
}

// All that follows from one state's signal.
template <class D>
struct Step {
  hn::Vec<D> slope;   // of the step, by the signal
  hn::Vec<D> factor;  // of the step, by `step`
  hn::Vec<D> delta;
  Complex<D> a, less_one;  // exp(z), exp(z) - 1
  hn::Vec<D> unsound;      // zero, NaN if the signal is no number
};

template <StepRule rule, class D, typename T>
HWY_INLINE Step<D> step_of(D d, const StepConstants& k, double time, const T* m, int64_t c) {
  using V = hn::Vec<D>;
  const V one = hn::Set(d, 1.0), t = hn::Set(d, time), rate = hn::LoadU(d, k.step + c), signal = load(d, m + c);
  Step<D> s;
  if constexpr (rule == StepRule::softplus) {
    const V sum = hn::Add(signal, rate);
    s.delta = hn::Mul(t, softplus(d, sum));
    s.slope = s.factor = hn::Mul(t, sigmoid(d, sum));
  } else {
    const V gate = sigmoid(d, signal), twice = hn::Mul(hn::Add(t, t), gate);
    s.factor = twice;
    s.delta = hn::Mul(rate, twice);
    s.slope = hn::Mul(s.delta, hn::Sub(one, gate));
  }
  // Highway's functions make numbers of NaN; a signal that is none, or infinite, must be seen in the result.
  s.unsound = hn::Sub(signal, signal);
  const V re = hn::Max(hn::Set(d, -700.0), hn::Mul(hn::LoadU(d, k.lambda_re + c), s.delta));
  const V angle = reduced(d, hn::Mul(hn::LoadU(d, k.lambda_im + c), s.delta));
  const V sine = hn::Sin(d, angle), cosine = hn::Cos(d, angle), radius = hn::Add(hn::Exp(d, re), s.unsound);
  // cos - 1 loses its digits near zero, -sin^2 / (1 + cos) on the other side.
  const V below = hn::Sub(cosine, one), near = hn::Neg(hn::Div(hn::Mul(sine, sine), hn::Add(one, cosine)));
  const V turned = hn::IfThenElse(hn::Gt(cosine, hn::Zero(d)), near, below);
  s.a = {hn::Mul(radius, cosine), hn::Mul(radius, sine)};
  s.less_one = {hn::Add(hn::MulAdd(hn::Expm1(d, re), cosine, turned), s.unsound), s.a.im};
  return s;
}

template <class D>
HWY_INLINE Complex<D> lambda_of(D d, const StepConstants& k, int64_t c) {
  return {hn::LoadU(d, k.lambda_re + c), hn::LoadU(d, k.lambda_im + c)};
}

// sqrt(1 - |a|^2) from expm1 of the exponent; never zero, since the backward divides by it.
template <class D>
HWY_INLINE hn::Vec<D> ring_gain(D d, const StepConstants& k, const Step<D>& s, int64_t c) {
  const auto twice = hn::Max(hn::Set(d, -700.0), hn::Mul(hn::LoadU(d, k.lambda_re + c), hn::Add(s.delta, s.delta)));
  return hn::Add(hn::Sqrt(hn::Max(hn::Set(d, 1e-300), hn::Neg(hn::Expm1(d, twice)))), s.unsound);
}

template <StepRule rule, GainRule gain, typename T>
void forward(const StepConstants& k, const StepRows<T>& rows) {
  const int64_t P = k.P;
  for (int64_t r = 0; r < rows.rows; ++r) {
    const T *m = rows.m + r * P, *b = rows.b + r * 2 * P;
    T *a = rows.a + r * 2 * P, *out = rows.out + r * 2 * P;
    for_channels<double>(P, [&](auto d, int64_t c) HWY_ATTR {
      using D = decltype(d);
      const Step<D> s = step_of<rule>(d, k, rows.time, m, c);
      const Complex<D> input{load(d, b + c), load(d, b + P + c)};
      Complex<D> scaled;
      if constexpr (gain == GainRule::zoh) {
        scaled = multiply(divide(s.less_one, lambda_of(d, k, c)), input);
      } else {
        scaled = scale(input, ring_gain(d, k, s, c));
      }
      store_pairs(d, s.a, a + 2 * c);
      store(d, scaled.re, out + c);
      store(d, scaled.im, out + P + c);
    });
  }
}

// d gamma / d lambda = (Delta a - gamma) / lambda = Delta^2 (1/2 + z/3 + z^2/8 + ...).
template <class D>
HWY_INLINE Complex<D> gamma_slope(D d, const Complex<D>& lambda, const Step<D>& s, const Complex<D>& gamma) {
  const Complex<D> z = scale(lambda, s.delta);
  Complex<D> sum{hn::Set(d, 1.0 / 144), hn::Zero(d)};
  for (const double term : {1.0 / 30, 1.0 / 8, 1.0 / 3, 1.0 / 2}) {
    sum = multiply(sum, z);
    sum.re = hn::Add(sum.re, hn::Set(d, term));
  }
  const Complex<D> series = scale(sum, hn::Mul(s.delta, s.delta));
  const Complex<D> whole = divide(add(scale(s.a, s.delta), scale(gamma, hn::Set(d, -1.0))), lambda);
  const auto small = hn::Lt(hn::MulAdd(z.re, z.re, hn::Mul(z.im, z.im)), hn::Set(d, 1e-4));
  return {hn::IfThenElse(small, series.re, whole.re), hn::IfThenElse(small, series.im, whole.im)};
}

template <class D>
HWY_INLINE void accumulate(D d, hn::Vec<D> x, double* sum) {
  hn::StoreU(hn::Add(hn::LoadU(d, sum), x), d, sum);
}

template <StepRule rule, GainRule gain, typename T>
void backward(const StepConstants& k, const StepBackwardRows<T>& rows) {
  const int64_t P = k.P;
  for (int64_t r = 0; r < rows.rows; ++r) {
    const T *m = rows.m + r * P, *b = rows.b + r * 2 * P;
    for_channels<double>(P, [&](auto d, int64_t c) HWY_ATTR {
      using D = decltype(d);
      const Step<D> s = step_of<rule>(d, k, rows.time, m, c);
      const Complex<D> zero{hn::Zero(d), hn::Zero(d)}, input{load(d, b + c), load(d, b + P + c)};
      const T* go = rows.grad_out == nullptr ? nullptr : rows.grad_out + r * 2 * P;
      const Complex<D> ga = rows.grad_a == nullptr ? zero : load_pairs(d, rows.grad_a + r * 2 * P + 2 * c);
      const Complex<D> gout = go == nullptr ? zero : Complex<D>{load(d, go + c), load(d, go + P + c)};
      const Complex<D> ggamma = multiply_conj(input, gout), lambda = lambda_of(d, k, c);
      const Complex<D> by_z = multiply_conj(s.a, ga);
      Complex<D> gb, glambda = scale(by_z, s.delta);
      auto gdelta = multiply_conj(lambda, by_z).re;
      if constexpr (gain == GainRule::zoh) {
        const Complex<D> gamma = divide(s.less_one, lambda);
        gb = multiply_conj(gamma, gout);
        gdelta = hn::Add(gdelta, multiply_conj(s.a, ggamma).re);
        glambda = add(glambda, multiply_conj(gamma_slope(d, lambda, s, gamma), ggamma));
      } else {
        const auto gamma = ring_gain(d, k, s, c);
        const auto square = hn::MulAdd(s.a.re, s.a.re, hn::Mul(s.a.im, s.a.im));
        const auto by_re = hn::Neg(hn::Div(hn::Mul(square, ggamma.re), gamma));
        gb = scale(gout, gamma);
        gdelta = hn::MulAdd(lambda.re, by_re, gdelta);
        glambda.re = hn::MulAdd(s.delta, by_re, glambda.re);
      }
      store(d, hn::Mul(gdelta, s.slope), rows.grad_m + r * P + c);
      store(d, gb.re, rows.grad_b + r * 2 * P + c);
      store(d, gb.im, rows.grad_b + r * 2 * P + P + c);
      accumulate(d, glambda.re, rows.grad_lambda_re + c);
      accumulate(d, glambda.im, rows.grad_lambda_im + c);
      accumulate(d, hn::Mul(gdelta, s.factor), rows.grad_step + c);
    });
  }
}

// Calls run(rule, gain) with the two as compile-time constants.
template <class Run>
HWY_INLINE void with_kinds(const StepConstants& k, const Run& run) {
  const auto by_gain = [&](auto rule) {
    if (k.gain == GainRule::zoh) {
      run(rule, std::integral_constant<GainRule, GainRule::zoh>());
    } else {
      run(rule, std::integral_constant<GainRule, GainRule::ring>());
    }
  };
  if (k.rule == StepRule::softplus) {
    by_gain(std::integral_constant<StepRule, StepRule::softplus>());
  } else {
    by_gain(std::integral_constant<StepRule, StepRule::sigmoid>());
  }
}

template <typename T>
void forward_any(const StepConstants& k, const StepRows<T>& rows) {
  with_kinds(k, [&](auto rule, auto gain) { forward<rule(), gain()>(k, rows); });
}

template <typename T>
void backward_any(const StepConstants& k, const StepBackwardRows<T>& rows) {
  with_kinds(k, [&](auto rule, auto gain) { backward<rule(), gain()>(k, rows); });
}

void StepFloat(const StepConstants& k, const StepRows<float>& rows) { forward_any(k, rows); }
void StepDouble(const StepConstants& k, const StepRows<double>& rows) { forward_any(k, rows); }
void StepBackwardFloat(const StepConstants& k, const StepBackwardRows<float>& rows) { backward_any(k, rows); }
void StepBackwardDouble(const StepConstants& k, const StepBackwardRows<double>& rows) { backward_any(k, rows); }

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(StepFloat);
HWY_EXPORT(StepDouble);
HWY_EXPORT(StepBackwardFloat);
HWY_EXPORT(StepBackwardDouble);

void step_rows(const StepConstants& k, const StepRows<float>& rows) { HWY_DYNAMIC_DISPATCH(StepFloat)(k, rows); }
void step_rows(const StepConstants& k, const StepRows<double>& rows) { HWY_DYNAMIC_DISPATCH(StepDouble)(k, rows); }
void step_backward_rows(const StepConstants& k, const StepBackwardRows<float>& rows) {
  HWY_DYNAMIC_DISPATCH(StepBackwardFloat)(k, rows);
}
void step_backward_rows(const StepConstants& k, const StepBackwardRows<double>& rows) {
  HWY_DYNAMIC_DISPATCH(StepBackwardDouble)(k, rows);
}

}  // namespace convssm::ops
#endif  // HWY_ONCE
