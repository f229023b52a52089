// Discretizations against long double arithmetic and finite differences, down to lambda = 0 and up to HiPPO's largest.
#include "convssm/ssm/discretize.h"

#include <complex>

#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::distance;
using testing::error_text;
using testing::gradient_error;
using testing::max_abs;
using Complex = std::complex<double>;
using Exact = std::complex<long double>;

at::Tensor tensor(std::vector<Complex> values) {
  const auto n = static_cast<int64_t>(values.size());
  return at::from_blob(values.data(), {n}, at::kComplexDouble).clone();
}

at::Tensor scalar(double value) { return at::full({1}, value, at::kDouble); }

Complex entry(const at::Tensor& x, int64_t i = 0) {
  return static_cast<Complex>(x.data_ptr<c10::complex<double>>()[i]);
}

Exact exact_phi(Exact z) {
  if (std::abs(z) < 0.5L) {
    Exact sum = 1;
    for (int n = 30; n >= 1; --n) sum = 1.0L + z * sum / static_cast<long double>(n + 1);
    return sum;
  }
  const auto x = z.real(), y = z.imag();
  const auto half = std::sin(y / 2);
  return Exact(std::expm1(x) * std::cos(y) - 2 * half * half, std::exp(x) * std::sin(y)) / z;
}

Exact exact_phi_derivative(Exact z) {
  if (std::abs(z) >= 0.5L) return (std::exp(z) - exact_phi(z)) / z;
  Exact sum = 0, power = 1;
  long double factorial = 2;  // phi' = sum over n >= 1 of n z^(n-1) / (n+1)!
  for (int n = 1; n < 30; ++n, power *= z, factorial *= n + 1) sum += power * static_cast<long double>(n) / factorial;
  return sum;
}

double relative_error(Complex found, Exact expected) {
  return static_cast<double>(std::abs(Exact(found) - expected) / std::abs(expected));
}

// Arguments z = lambda delta from 1e-300 to HiPPO's largest, on both sides of the border of the series, near the zeros
// 2 pi i n.
std::vector<Complex> arguments() {
  std::vector<Complex> z;
  for (const double radius :
       {1e-300, 1e-160, 1e-20, 1e-12, 1e-8, 1e-4, 1e-2, 0.12, 0.12499, 0.12501, 0.2, 1., 3., 20.}) {
    for (int k = 0; k < 16; ++k) z.push_back(std::polar(radius, 2 * M_PI * (k + 0.1) / 16));
  }
  for (const double im : {-333771.6, -33377.16, -1335087.9, 6.283185307179586, 62.83185307179586, -628318.5307179586}) {
    for (const double re : {-500., -1., -5e-2, -1e-7, 0., 1e-9}) z.emplace_back(re, im);
  }
  return z;
}

TEST(Phi, IsExactTo1e14Everywhere) {
  const auto z = arguments();
  const auto found = phi(tensor(z));
  for (size_t i = 0; i < z.size(); ++i) EXPECT_LT(relative_error(entry(found, i), exact_phi(z[i])), 2e-15) << z[i];
  EXPECT_EQ(entry(phi(tensor({0}))), Complex(1, 0));
}

TEST(Phi, GradientIsExactTo1e14Everywhere) {
  const auto z = arguments();
  auto x = tensor(z).requires_grad_(true);
  at::real(phi(x)).sum().backward();
  for (size_t i = 0; i < z.size(); ++i) {
    const auto expected = std::conj(exact_phi_derivative(z[i]));
    const auto scale = std::max(std::abs(expected), std::abs(exact_phi(z[i])));
    EXPECT_LT(std::abs(Exact(entry(x.grad(), i)) - expected) / scale, 1e-14) << z[i];
  }
}

TEST(Phi, HasTheGradientOneHalfAtZero) {
  auto z = tensor({0, {-0.0, -0.0}}).requires_grad_(true);
  at::real(phi(z)).sum().backward();
  EXPECT_EQ(entry(z.grad(), 0), Complex(0.5, 0));
  EXPECT_EQ(entry(z.grad(), 1), Complex(0.5, 0));
}

TEST(Discretize, MatchesItsFormulasInLongDouble) {
  const std::vector<Complex> lambda = {
      0, {-1e-4, 0}, {-0.5, -0.352018}, {-0.5, -80.966081}, {-0.5, -333771.6}, {0.3, 1.2}, {-1e-9, 1e-9}};
  for (const double delta : {1e-3, 0.0371, 0.1, 1.0}) {
    const auto z = discretize(tensor(lambda), scalar(delta), Discretization::zoh);
    const auto b = discretize(tensor(lambda), scalar(delta), Discretization::bilinear);
    const auto e = discretize(tensor(lambda), scalar(delta), Discretization::euler);
    for (size_t i = 0; i < lambda.size(); ++i) {
      const Exact product = lambda[i] * delta;  // rounded: the phase is exact for the product as float64 holds it
      const long double dt = delta;
      EXPECT_LT(relative_error(entry(z.lambda_bar, i), std::exp(product)), 1e-15);
      EXPECT_LT(relative_error(entry(z.gamma, i), dt * exact_phi(product)), 2e-15);
      EXPECT_LT(relative_error(entry(b.lambda_bar, i), (1.0L + product / 2.0L) / (1.0L - product / 2.0L)), 1e-15);
      EXPECT_LT(relative_error(entry(b.gamma, i), dt / (1.0L - product / 2.0L)), 1e-15);
      EXPECT_LT(relative_error(entry(e.lambda_bar, i), 1.0L + product), 1e-15);
      EXPECT_EQ(entry(e.gamma, i), Complex(delta, 0));
    }
  }
}

TEST(Discretize, TwoZohStepsAreOneOfDoubleLength) {
  const auto lambda = tensor({{-0.5, -325.426}, {-1e-4, 0.2}, 0});
  const auto one = discretize(lambda, scalar(0.02), Discretization::zoh);
  const auto two = discretize(lambda, scalar(0.04), Discretization::zoh);
  EXPECT_LT(distance(one.lambda_bar * one.lambda_bar, two.lambda_bar), 1e-14);
  EXPECT_LT(distance(one.gamma * (1 + one.lambda_bar), two.gamma), 1e-16);
}

TEST(Discretize, MethodsConvergeWithTheirOrder) {
  const auto lambda = tensor({{-0.5, -2.0}});
  const auto error = [&](double delta, Discretization method) {
    return distance(discretize(lambda, scalar(delta), method).lambda_bar,
                    discretize(lambda, scalar(delta), Discretization::zoh).lambda_bar);
  };
  EXPECT_NEAR(std::log2(error(2e-3, Discretization::euler) / error(1e-3, Discretization::euler)), 2, 0.01);
  EXPECT_NEAR(std::log2(error(2e-3, Discretization::bilinear) / error(1e-3, Discretization::bilinear)), 3, 0.01);
}

TEST(Discretize, GradientsMatchFiniteDifferences) {
  // z = lambda delta lies on both sides of the border of the series and next to 0.
  const auto re = at::tensor({-0.5, -0.01, 0.0, -0.3, -1e-4, 0.2}, at::kDouble);
  const auto im = at::tensor({-5.0, 0.0, 0.0, 1.0, 1e-3, -40.0}, at::kDouble);
  const auto log_delta = at::tensor({-1.0, -3.0, -2.0, -0.9, -2.3, -2.0}, at::kDouble);
  const auto weight = at::complex(testing::randn({2, 6}, 1), testing::randn({2, 6}, 2));
  for (const auto method : {Discretization::zoh, Discretization::bilinear, Discretization::euler}) {
    const auto loss = [&] {
      const auto bar = discretize(at::complex(re, im), at::exp(log_delta), method);
      return at::real(weight[0] * bar.lambda_bar + weight[1] * bar.gamma).sum();
    };
    EXPECT_LT(gradient_error(loss, {re, im, log_delta}), 1e-10) << name(method);
  }
}

TEST(Discretize, GradientsAtZeroAreTheLimits) {
  for (const auto method : {Discretization::zoh, Discretization::bilinear, Discretization::euler}) {
    auto lambda = tensor({0}).requires_grad_(true);
    auto delta = scalar(0.1).requires_grad_(true);
    const auto bar = discretize(lambda, delta, method);
    const auto of_gamma = torch::autograd::grad({at::real(bar.gamma).sum()}, {lambda, delta}, {}, true, false, true);
    const auto of_lambda_bar = torch::autograd::grad({at::real(bar.lambda_bar).sum()}, {lambda, delta});
    if (method == Discretization::euler) {
      EXPECT_FALSE(of_gamma[0].defined());
    } else {
      EXPECT_NEAR(std::abs(entry(of_gamma[0]) - 0.1 * 0.1 / 2), 0, 1e-17) << name(method);
    }
    EXPECT_EQ(of_gamma[1].item<double>(), 1);
    EXPECT_NEAR(std::abs(entry(of_lambda_bar[0]) - 0.1), 0, 1e-17);
    EXPECT_EQ(of_lambda_bar[1].item<double>(), 0);
  }
}

TEST(Discretize, BroadcastsStepsPerFrameAndSample) {
  const auto lambda = tensor({{-0.5, -2.0}, {-0.5, -7.0}, {-0.1, 0}});
  const auto delta = at::exp(testing::randn({4, 2, 1}, 3));
  for (const auto method : {Discretization::zoh, Discretization::bilinear, Discretization::euler}) {
    const auto all = discretize(lambda, delta, method);
    ASSERT_EQ(all.lambda_bar.sizes(), at::IntArrayRef({4, 2, 3}));
    const auto one = discretize(lambda, delta[3][1], method);
    EXPECT_LT(distance(all.lambda_bar[3][1], one.lambda_bar), 1e-15);
    EXPECT_LT(distance(all.gamma[3][1], one.gamma), 1e-15);
  }
}

TEST(Discretize, RefusesBadSteps) {
  const auto lambda = tensor({{-0.5, 1}, {-0.5, 2}});
  const auto text = [&](std::vector<double> delta) {
    return error_text([&] { discretize(lambda, at::tensor(delta, at::kDouble), Discretization::zoh); });
  };
  EXPECT_EQ(text({0.1, 0}), "[discretize] the time step delta must be positive and finite, got 0 at element 1 of [2]");
  EXPECT_EQ(text({-0.5, 1}),
            "[discretize] the time step delta must be positive and finite, got -0.5 at element 0 of [2]");
  EXPECT_NE(text({NAN, 1}).find("got nan at element 0"), std::string::npos);
  EXPECT_NE(text({1, INFINITY}).find("got inf at element 1"), std::string::npos);
  EXPECT_EQ(text({1e-300, 1}), "");
  try {
    check_delta(scalar(NAN));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
  }
}

TEST(Discretize, RefusesBadTypesAndShapes) {
  const auto lambda = tensor({{-0.5, 1}, {-0.5, 2}});
  const auto zoh = [](const at::Tensor& l, const at::Tensor& d) {
    return error_text([&] { discretize(l, d, Discretization::zoh); });
  };
  EXPECT_EQ(zoh(lambda.to(at::kComplexFloat), scalar(1)), "[discretize] lambda must be complex128, got complex64");
  EXPECT_EQ(zoh(lambda, scalar(1).to(at::kFloat)), "[discretize] delta must be float64, got float32");
  EXPECT_EQ(zoh(lambda, at::ones({3}, at::kDouble)),
            "[discretize] lambda and delta must be broadcastable, got [2] and [3]");
  EXPECT_EQ(zoh({}, scalar(1)), "[discretize] lambda must be complex128, got an undefined tensor");
}

TEST(Discretize, NamesParseAndPrint) {
  for (const auto method : {Discretization::zoh, Discretization::bilinear, Discretization::euler}) {
    EXPECT_EQ(parse_discretization(name(method)), method);
  }
  EXPECT_EQ(error_text([] { parse_discretization("tustin"); }),
            "[discretize] discretization must be zoh, bilinear or euler, got 'tustin'");
}

TEST(ClipEigenvalues, StopsAtMinus1e4WithNoGradient) {
  auto re = at::tensor({-0.5, -1e-4 - 1e-9, 0.0, 3.0}, at::kDouble).requires_grad_(true);
  const auto clipped = clip_eigenvalues(re, true);
  EXPECT_EQ(distance(clipped, at::tensor({-0.5, -1e-4 - 1e-9, -1e-4, -1e-4}, at::kDouble)), 0);
  clipped.sum().backward();
  EXPECT_EQ(distance(re.grad(), at::tensor({1.0, 1.0, 0.0, 0.0}, at::kDouble)), 0);
  EXPECT_EQ(distance(clip_eigenvalues(re, false), re), 0);
}

}  // namespace
}  // namespace convssm::ssm
