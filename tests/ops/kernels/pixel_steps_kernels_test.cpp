// Coefficients from the input on every instruction set, against complex arithmetic of one number after the other. Gradients are
// checked once, against finite differences, in tests/ops; here every instruction set must agree with the others on them.
#include "convssm/ops/pixel_steps_kernels.h"

#include <complex>

#include "convssm/ops/liquid_kernels.h"
#include "tests/ops/kernels/kernel_test.h"

namespace convssm::ops::testing {
namespace {

using Number = std::complex<double>;

struct StepArrays {
  std::vector<double> re, im, step;
  StepConstants constants(StepRule rule, GainRule gain) const {
    return {static_cast<int64_t>(re.size()), rule, gain, re.data(), im.data(), step.data()};
  }
};

// Eigenvalues with angles of up to hundreds of turns.
StepArrays step_arrays(int64_t P, StepRule rule) {
  StepArrays all{normals<double>(P, 1), normals<double>(P, 2, 3e4), normals<double>(P, 3, 0.3, 1)};
  for (double& re : all.re) re = -0.1 - std::abs(re);
  for (double& step : all.step) step = rule == StepRule::softplus ? std::log(std::expm1(0.02 * std::abs(step))) : 0.02;
  return all;
}

template <typename T>
void expect_coefficients(int64_t P, StepRule rule, GainRule gain) {
  const int64_t rows = 3;
  const StepArrays arrays = step_arrays(P, rule);
  const auto m = normals<T>(rows * P, 4), b = normals<T>(rows * 2 * P, 5);
  auto a = unwritten<T>(rows * 2 * P), out = unwritten<T>(rows * 2 * P);
  step_rows(arrays.constants(rule, gain), StepRows<T>{rows, 0.7, m.data(), b.data(), a.data(), out.data()});
  auto expected_a = filled<double>(rows * 2 * P, 0), expected_out = expected_a;
  for (int64_t i = 0; i < rows * P; ++i) {
    const int64_t p = i % P, row = i / P * 2 * P;
    const double signal = static_cast<double>(m[i]);
    const double delta = 0.7 * (rule == StepRule::softplus ? std::log1p(std::exp(signal + arrays.step[p]))
                                                           : arrays.step[p] * 2 * sigmoid(signal));
    const Number lambda(arrays.re[p], arrays.im[p]), z = std::exp(lambda * delta);
    const Number by = gain == GainRule::zoh ? (z - 1.0) / lambda : Number(std::sqrt(1 - std::norm(z)));
    const Number scaled = by * Number(static_cast<double>(b[row + p]), static_cast<double>(b[row + P + p]));
    expected_a[row + 2 * p] = z.real(), expected_a[row + 2 * p + 1] = z.imag();
    expected_out[row + p] = scaled.real(), expected_out[row + P + p] = scaled.imag();
  }
  const double bound = sizeof(T) == 4 ? 1e-6 : 1e-11;  // the angle is of up to 1e3, and rounded by 1e-13
  EXPECT_LT(difference(a, expected_a), bound) << P;
  EXPECT_LT(difference(out, expected_out), bound) << P;
}

TEST(PixelStepKernels, AreComplexExponentials) {
  on_every_isa_and_type([](auto type) {
    for (const int64_t P : kSizes) {
      for (const StepRule rule : {StepRule::softplus, StepRule::sigmoid}) {
        for (const GainRule gain : {GainRule::zoh, GainRule::ring}) expect_coefficients<decltype(type)>(P, rule, gain);
      }
    }
  });
}

template <typename T>
std::vector<double> step_gradients(int64_t P, StepRule rule, GainRule gain) {
  const int64_t rows = 2;
  StepArrays arrays = step_arrays(P, rule);
  for (double& im : arrays.im) im *= 1e-3;  // rounding of large angles differs
  const auto m = normals<T>(rows * P, 4), b = normals<T>(rows * 2 * P, 5), ga = normals<T>(rows * 2 * P, 6),
             go = normals<T>(rows * 2 * P, 7);
  auto gm = unwritten<T>(rows * P), gb = unwritten<T>(rows * 2 * P);
  auto re = filled<double>(P, 0), im = re, step = re;
  step_backward_rows(arrays.constants(rule, gain),
                     StepBackwardRows<T>{rows, 0.7, m.data(), b.data(), ga.data(), go.data(), gm.data(), gb.data(),
                                         re.data(), im.data(), step.data()});
  std::vector<double> all = exact(gm);
  for (const auto& more : {exact(gb), re, im, step}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(PixelStepKernels, GradientsAreTheSameOnEveryInstructionSet) {
  for (const int64_t P : kSizes) {
    for (const StepRule rule : {StepRule::softplus, StepRule::sigmoid}) {
      for (const GainRule gain : {GainRule::zoh, GainRule::ring}) {
        const auto expected = step_gradients<double>(P, rule, gain);
        on_every_isa([&] {
          EXPECT_LT(difference(step_gradients<double>(P, rule, gain), expected), 1e-12) << P;
          EXPECT_LT(difference(step_gradients<float>(P, rule, gain), expected), 1e-4) << P;
        });
      }
    }
  }
}

TEST(LiquidKernels, AreCutToTheCircle) {
  on_every_isa_and_type([](auto type) {
    using T = decltype(type);
    for (const int64_t P : kSizes) {
      const int64_t rows = 2;
      const auto a_bar = normals<T>(2 * P, 1, 0.5), l = normals<T>(2 * P, 2), b = normals<T>(rows * 2 * P, 3);
      auto a = unwritten<T>(rows * 2 * P);
      liquid_rows(LiquidRows<T>{rows, P, a_bar.data(), l.data(), b.data(), a.data()});
      auto expected = filled<double>(rows * 2 * P, 0);
      const auto number = [](T re, T im) { return Number(static_cast<double>(re), static_cast<double>(im)); };
      for (int64_t i = 0; i < rows * P; ++i) {
        const int64_t p = i % P, row = i / P * 2 * P;
        Number v = number(a_bar[2 * p], a_bar[2 * p + 1]) +
                   number(l[2 * p], l[2 * p + 1]) * number(b[row + p], b[row + P + p]);
        v /= std::max(1.0, std::abs(v));
        expected[row + 2 * p] = v.real(), expected[row + 2 * p + 1] = v.imag();
      }
      EXPECT_LT(difference(a, expected), tolerance<T>()) << P;
    }
  });
}

template <typename T>
std::vector<double> liquid_gradients(int64_t P) {
  const int64_t rows = 2;
  const auto a_bar = normals<T>(2 * P, 1, 0.5), l = normals<T>(2 * P, 2), b = normals<T>(rows * 2 * P, 3),
             g = normals<T>(rows * 2 * P, 4);
  auto gb = unwritten<T>(rows * 2 * P);
  auto ga = filled<double>(2 * P, 0), gl = ga;
  liquid_backward_rows(
      LiquidBackwardRows<T>{rows, P, a_bar.data(), l.data(), b.data(), g.data(), gb.data(), ga.data(), gl.data()});
  std::vector<double> all = exact(gb);
  for (const auto& more : {ga, gl}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(LiquidKernels, GradientsAreTheSameOnEveryInstructionSet) {
  for (const int64_t P : kSizes) {
    const auto expected = liquid_gradients<double>(P);
    on_every_isa([&] {
      EXPECT_LT(difference(liquid_gradients<double>(P), expected), 1e-13) << P;
      EXPECT_LT(difference(liquid_gradients<float>(P), expected), 1e-3) << P;
    });
  }
}

}  // namespace
}  // namespace convssm::ops::testing
