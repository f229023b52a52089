// Coefficients that depend on the input, against one number after the other in complex arithmetic; gradients against finite
// differences; |a| <= 1 whatever the input; the plain versions.
#include "convssm/ops/pixel_steps.h"

#include <complex>

#include "convssm/ops/liquid.h"
#include "tests/support.h"

namespace convssm::ops {
namespace {

using convssm::testing::distance;
using convssm::testing::expect_error;
using convssm::testing::gradient_error;
using convssm::testing::max_abs;
using convssm::testing::randn;
using Number = std::complex<double>;

struct StepCase {
  PixelStates states;
  at::Tensor times, m, b;
};

// P states whose eigenvalues reach from slow to fast, and steps between 1e-3 and 0.1.
StepCase step_case(StepRule rule, GainRule gain, int64_t P, bool with_times) {
  const at::Tensor re = -0.5 - randn({P}, 1).abs(), im = 30 * randn({P}, 2);
  const at::Tensor step = at::exp(-4.6 + 2.3 * at::tanh(randn({P}, 3)));
  const at::Tensor times = with_times ? 0.1 + randn({3}, 4).abs() : at::Tensor();
  return {{re, im, step, rule, gain}, times, 2 * randn({3, P, 2, 5}, 5), randn({3, 2 * P, 2, 5}, 6)};
}

std::vector<StepCase> step_cases(int64_t P) {
  std::vector<StepCase> all;
  for (const StepRule rule : {StepRule::softplus, StepRule::sigmoid}) {
    for (const GainRule gain : {GainRule::zoh, GainRule::ring}) {
      for (const bool with_times : {false, true}) all.push_back(step_case(rule, gain, P, with_times));
    }
  }
  return all;
}

PixelCoefficients one_by_one(const StepCase& c) {
  const int64_t N = c.b.size(0), P = c.m.size(1), H = c.b.size(2), W = c.b.size(3);
  const at::Tensor a = at::zeros({N, P, H, W, 2}, at::kDouble), out = at::zeros_like(c.b);
  const auto value = [](const at::Tensor& x, at::IntArrayRef i) {
    at::Tensor y = x;
    for (const int64_t k : i) y = y[k];
    return y.item<double>();
  };
  for (int64_t i = 0; i < N * P * H * W; ++i) {
    const int64_t n = i / (P * H * W), p = i / (H * W) % P, h = i / W % H, w = i % W;
    const double signal = value(c.m, {n, p, h, w}), step = value(c.states.step, {p});
    double delta = c.states.rule == StepRule::softplus ? std::log1p(std::exp(signal + std::log(std::expm1(step))))
                                                       : step * 2 / (1 + std::exp(-signal));
    if (c.times.defined()) delta *= value(c.times, {n});
    const Number lambda(value(c.states.lambda_re, {p}), value(c.states.lambda_im, {p})), z = std::exp(lambda * delta);
    const Number gamma = c.states.gain == GainRule::zoh ? (z - 1.0) / lambda : Number(std::sqrt(1 - std::norm(z)));
    const Number scaled = gamma * Number(value(c.b, {n, p, h, w}), value(c.b, {n, P + p, h, w}));
    a[n][p][h][w][0] = z.real(), a[n][p][h][w][1] = z.imag();
    out[n][p][h][w] = scaled.real(), out[n][P + p][h][w] = scaled.imag();
  }
  return {at::view_as_complex(a), out};
}

TEST(PixelSteps, AreThoseOfOneNumberAfterTheOther) {
  for (const StepCase& c : step_cases(7)) {
    const PixelCoefficients expected = one_by_one(c), got = pixel_steps(c.states, c.times, c.m, c.b);
    EXPECT_LT(distance(got.a, expected.a), 1e-13);
    EXPECT_LT(distance(got.b, expected.b), 1e-13);
    const PixelCoefficients plain = pixel_steps_plain(c.states, c.times, c.m, c.b);
    EXPECT_LT(distance(plain.a, expected.a), 1e-13);
    EXPECT_LT(distance(plain.b, expected.b), 1e-13);
    const PixelCoefficients single = pixel_steps(c.states, c.times, c.m.to(at::kFloat), c.b.to(at::kFloat));
    EXPECT_EQ(single.a.scalar_type(), at::kComplexFloat);
    EXPECT_LT(distance(single.a.to(at::kComplexDouble), expected.a), 1e-4);  // of rounding m to float32
    EXPECT_LT(distance(single.b.to(at::kDouble), expected.b), 1e-5);
  }
}

TEST(PixelSteps, GradientsAreThoseOfFiniteDifferences) {
  for (const StepCase& c : step_cases(3)) {
    const at::Tensor ga = randn({3, 3, 2, 5, 2}, 7), gb = randn(c.b.sizes(), 8);
    const auto loss = [&] {
      const PixelCoefficients out = pixel_steps(c.states, c.times, c.m, c.b);
      return (at::view_as_real(out.a) * ga).sum() + (out.b * gb).sum();
    };
    const std::vector<at::Tensor> inputs{c.states.lambda_re, c.states.lambda_im, c.m, c.b};
    EXPECT_LT(gradient_error(loss, inputs), 1e-7);
    at::Tensor log_step = at::log(c.states.step).detach();
    StepCase logarithmic = c;
    const auto by_step = [&] {
      logarithmic.states.step = at::exp(log_step);
      const PixelCoefficients out = pixel_steps(logarithmic.states, c.times, c.m, c.b);
      return (at::view_as_real(out.a) * ga).sum() + (out.b * gb).sum();
    };
    EXPECT_LT(gradient_error(by_step, {log_step}), 1e-7);
  }
}

// Where one of the two results is not used.
TEST(PixelSteps, GradientsOfOneResultAlone) {
  const StepCase c = step_case(StepRule::softplus, GainRule::zoh, 3, false);
  EXPECT_LT(gradient_error([&] { return at::abs(pixel_steps(c.states, {}, c.m, c.b).a).sum(); }, {c.m}), 1e-7);
  EXPECT_LT(gradient_error([&] { return pixel_steps(c.states, {}, c.m, c.b).b.square().sum(); }, {c.m, c.b}), 1e-7);
}

// A signal of zero is the step itself; whatever it is, no state grows.
TEST(PixelSteps, StayInTheUnitDisc) {
  for (StepCase c : step_cases(9)) {
    c.m = c.m * 1e3;
    const PixelCoefficients out = pixel_steps(c.states, c.times, c.m, c.b);
    EXPECT_LE(max_abs(out.a), 1.0);
    EXPECT_LE(max_abs(pixel_steps(c.states, c.times, c.m.to(at::kFloat), c.b.to(at::kFloat)).a), 1.0 + 1e-7);
    EXPECT_TRUE(at::isfinite(out.b).all().item<bool>());
    const at::Tensor z = at::complex(c.states.lambda_re, c.states.lambda_im) * c.states.step;
    const at::Tensor still = pixel_steps(c.states, {}, at::zeros_like(c.m), c.b).a;
    EXPECT_LT(distance(still, at::exp(z).view({1, 9, 1, 1}).expand_as(still)), 1e-13);
  }
}

TEST(PixelSteps, NumbersDoNotDependOnThreads) {
  const StepCase c = step_case(StepRule::sigmoid, GainRule::zoh, 16, false);
  const at::Tensor m = randn({64, 16, 3, 5}, 1), b = randn({64, 32, 3, 5}, 2), g = randn({64, 16, 3, 5, 2}, 3);
  const auto numbers = [&](int threads) {
    at::set_num_threads(threads);
    const std::vector<at::Tensor> inputs{c.states.lambda_re, c.states.lambda_im, c.states.step, m, b};
    for (auto input : inputs) input.requires_grad_(true);
    const PixelCoefficients out = pixel_steps(c.states, {}, m, b);
    const at::Tensor moved = liquid_coefficients(at::complex(c.states.step, c.states.step),
                                                 at::complex(c.states.lambda_re, c.states.lambda_im), b);
    const at::Tensor loss =
        (at::view_as_real(out.a) * g).sum() + (out.b * out.b).sum() + (at::view_as_real(moved) * g).sum();
    std::vector<at::Tensor> all = torch::autograd::grad({loss}, inputs);
    for (const at::Tensor& x : {at::view_as_real(out.a), out.b, at::view_as_real(moved)}) all.push_back(x.detach());
    return all;
  };
  const int before = at::get_num_threads();
  const auto one = numbers(1), three = numbers(3);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << i;
  at::set_num_threads(before);
}

// A model that has diverged must not look sound.
TEST(PixelSteps, NaNStaysNaN) {
  for (const StepRule rule : {StepRule::softplus, StepRule::sigmoid}) {
    for (const GainRule gain : {GainRule::zoh, GainRule::ring}) {
      const StepCase c = step_case(rule, gain, 5, false);
      c.m[1][2][0][3] = NAN;
      const PixelCoefficients out = pixel_steps(c.states, {}, c.m, c.b);
      EXPECT_TRUE(std::isnan(at::abs(out.a[1][2][0][3]).item<double>()));
      EXPECT_TRUE(std::isnan(out.b[1][2][0][3].item<double>()));
      EXPECT_EQ(at::isnan(at::view_as_real(out.a)).any(-1).sum().item<int64_t>(), 1);
    }
  }
}

struct LiquidCase {
  at::Tensor a_bar, l, b;  // pairs in place of complex numbers
  at::Tensor coefficients() const { return liquid_coefficients(at::view_as_complex(a_bar), at::view_as_complex(l), b); }
};

TEST(Liquid, EigenvaluesMoveWithTheInputAndStayInTheUnitDisc) {
  for (const bool own : {false, true}) {
    const at::Tensor a_bar = own ? randn({3, 5, 2}, 1) : randn({5, 2}, 1);
    const LiquidCase c{0.5 * a_bar, randn({5, 2}, 2), randn({3, 10, 2, 4}, 3)};
    const at::Tensor a = c.coefficients(), al = at::view_as_complex(c.l);
    EXPECT_LE(max_abs(a), 1 + 1e-15);
    EXPECT_LT(at::abs(a).min().item<double>(), 0.9);
    for (int64_t i = 0; i < a.numel(); ++i) {
      const int64_t n = i / 40, p = i / 8 % 5, h = i / 4 % 2, w = i % 4;
      const auto number = [](const at::Tensor& pair) { return Number(pair[0].item<double>(), pair[1].item<double>()); };
      const Number input(c.b[n][p][h][w].item<double>(), c.b[n][5 + p][h][w].item<double>());
      const Number v = number(own ? c.a_bar[n][p] : c.a_bar[p]) + number(c.l[p]) * input;
      const Number expected = std::abs(v) > 1 ? v / std::abs(v) : v;
      EXPECT_LT(std::abs(number(at::view_as_real(a[n][p][h][w].resolve_conj())) - expected), 1e-14);
    }
    EXPECT_LT(distance(liquid_coefficients_plain(at::view_as_complex(c.a_bar), al, c.b), a), 1e-14);
    const at::Tensor single = liquid_coefficients(at::view_as_complex(c.a_bar).to(at::kComplexFloat),
                                                  al.to(at::kComplexFloat), c.b.to(at::kFloat));
    EXPECT_LT(distance(single.to(at::kComplexDouble), a), 1e-6);
  }
}

TEST(Liquid, GradientsAreThoseOfFiniteDifferences) {
  for (const bool own : {false, true}) {
    const LiquidCase c{0.5 * (own ? randn({2, 3, 2}, 1) : randn({3, 2}, 1)), randn({3, 2}, 2), randn({2, 6, 2, 2}, 3)};
    const at::Tensor g = randn({2, 3, 2, 2, 2}, 4);
    EXPECT_LT(gradient_error([&] { return (at::view_as_real(c.coefficients()) * g).sum(); }, {c.a_bar, c.l, c.b}),
              1e-6);
  }
}

TEST(PixelSteps, BadUse) {
  const StepCase c = step_case(StepRule::softplus, GainRule::zoh, 4, true);
  expect_error([&] { pixel_steps(c.states, {}, c.m.narrow(1, 0, 3), c.b); },
               {"[pixel_steps] m", "[3,4,2,5]", "[3,3,2,5]"});
  expect_error([&] { pixel_steps(c.states, {}, c.m.to(at::kFloat), c.b); }, {"[pixel_steps] m", "float64", "float32"});
  expect_error([&] { pixel_steps(c.states, c.times.narrow(0, 0, 2), c.m, c.b); }, {"times", "[3]", "[2]"});
  expect_error([&] { pixel_steps(c.states, {}, c.m, c.b.narrow(1, 0, 7)); }, {"[N,2P,H,W]", "[3,7,2,5]"});
  const at::Tensor l = at::complex(randn({4}, 1), randn({4}, 2));
  expect_error([&] { liquid_coefficients(l.narrow(0, 0, 3), l, c.b); }, {"[liquid] a_bar", "P = 4", "[3]"});
  expect_error([&] { liquid_coefficients(l, l, c.b.to(at::kFloat)); }, {"[liquid]", "complex128", "float32"});
}

}  // namespace
}  // namespace convssm::ops
