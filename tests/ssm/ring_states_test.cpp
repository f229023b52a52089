// The ring of the Linear Recurrent Unit: where eigenvalues begin, statistically; the coordinates of B and C; bad use.
#include "convssm/ssm/ring_states.h"

#include "convssm/ssm/initializers.h"
#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::distance;
using testing::expect_error;

constexpr int64_t kMany = 20000;

// The largest distance between the distribution of the values and the uniform one on [0,1]: below 1.95 / sqrt(n) in 999 of
// 1000 draws (Kolmogorov and Smirnov).
double from_uniform(const at::Tensor& values) {
  const at::Tensor sorted = std::get<0>(values.sort());
  const int64_t n = values.size(0);
  const at::Tensor ranks = (at::arange(n, at::kDouble) + 0.5) / n;
  return (sorted - ranks).abs().max().item<double>() * std::sqrt(static_cast<double>(n));
}

TEST(RingStates, EigenvaluesBeginUniformInTheAreaOfTheirRing) {
  for (const Ring& ring : {Ring{}, Ring{0.0, 1.0}, Ring{0.5, 0.9, 0.3}}) {
    Stream stream(7, "ring");
    const RingStates states = init_ring(kMany, ring, stream);
    EXPECT_EQ(states.nu.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::isfinite(states.nu).all().item<bool>());
    const at::Tensor radius = at::exp(-states.nu.to(at::kDouble).exp()), phase = states.theta.to(at::kDouble).exp();
    EXPECT_GE(radius.min().item<double>(), ring.r_min - 1e-6);
    EXPECT_LE(radius.max().item<double>(), ring.r_max + 1e-6);
    const double inner = ring.r_min * ring.r_min, outer = ring.r_max * ring.r_max;
    EXPECT_LT(from_uniform((radius.square() - inner) / (outer - inner)), 1.95);
    EXPECT_LT(from_uniform(phase / ring.max_phase), 1.95);
    EXPECT_GT(from_uniform((radius - ring.r_min) / (ring.r_max - ring.r_min)), 1.95);  // the radius itself is not
  }
}

// lambda, gamma and their gradients in float64, against std::complex.
TEST(RingStates, DiscreteStatesAreTheFormula) {
  const at::Tensor nu = testing::randn({5}, 1), theta = testing::randn({5}, 2);
  const DiscreteStates found = discretize(RingStates{nu, theta}, {});
  for (int64_t p = 0; p < 5; ++p) {
    const std::complex<double> lambda =
        std::exp(std::complex<double>(-std::exp(nu[p].item<double>()), std::exp(theta[p].item<double>())));
    const c10::complex<double> a = found.a[p].item<c10::complex<double>>();
    EXPECT_NEAR(a.real(), lambda.real(), 1e-14);
    EXPECT_NEAR(a.imag(), lambda.imag(), 1e-14);
    EXPECT_NEAR(at::real(found.gamma)[p].item<double>(), std::sqrt(1 - std::norm(lambda)), 1e-14);
    EXPECT_EQ(at::imag(found.gamma)[p].item<double>(), 0);
  }
  const at::Tensor g = testing::randn({3, 5}, 3);
  const auto loss = [&] {
    const DiscreteStates d = discretize(RingStates{nu, theta}, {});
    return (g[0] * at::real(d.a) + g[1] * at::imag(d.a) + g[2] * at::real(d.gamma)).sum();
  };
  EXPECT_LT(testing::gradient_error(loss, {nu, theta}), 1e-7);
}

// A state of variance one is driven by noise of variance one, whatever its eigenvalue: that is what the factor is for.
TEST(RingStates, WhiteInputGivesStatesOfVarianceOne) {
  Stream stream(3, "ring");
  const DiscreteStates d = discretize(init_ring(400, {0.9, 0.99}, stream), {});
  at::Tensor x = at::zeros({400}, at::kComplexDouble);
  double power = 0;
  for (uint64_t k = 0; k < 2500; ++k) {
    x = d.a.to(at::kComplexDouble) * x + d.gamma.to(at::kComplexDouble) * testing::randn({400}, 100 + k);
    if (k >= 500) power += x.abs().square().mean().item<double>() / 2000;
  }
  EXPECT_NEAR(power, 1, 0.03);
}

// Pairs of real states that are turned and shrunk have these eigenvalues in these coordinates.
TEST(RingStates, CoordinatesAreThoseOfRotations) {
  Stream stream(5, "ring");
  const RingStates states = init_ring(4, {0.3, 0.9}, stream);
  const Spectrum s = ring_spectrum(states);
  const at::Tensor re = at::diag(at::real(s.lambda)), im = at::diag(at::imag(s.lambda));
  const at::Tensor rotation = at::cat({at::cat({re, -im}, 1), at::cat({im, re}, 1)});  // [N,N]
  const at::Tensor c0 = testing::randn({3, 8}, 1), b0 = testing::randn({8, 2}, 2);
  at::Tensor power = at::eye(8, at::kDouble), lambda = at::ones({4}, at::kComplexDouble);
  for (int k = 0; k < 4; ++k) {
    const at::Tensor c = at::matmul(c0.to(at::kComplexDouble), s.v),
                     b = at::matmul(s.v_inverse, b0.to(at::kComplexDouble));
    const at::Tensor complex = 2 * at::real(at::matmul(c * lambda, b));
    EXPECT_LT(distance(complex, at::matmul(at::matmul(c0, power), b0)), 1e-12) << k;
    power = at::matmul(power, rotation);
    lambda = lambda * s.lambda;
  }
}

TEST(RingStates, BadRings) {
  const auto make = [](const Ring& ring) {
    return [ring] {
      Stream stream(1, "ring");
      init_ring(4, ring, stream);
    };
  };
  expect_error(make({0.9, 0.9}), {"[init_ring]", "r_min < r_max", "0.9"});
  expect_error(make({0.99, 0.5}), {"r_min 0.99", "r_max 0.5"});
  expect_error(make({0.9, 1.01}), {"r_max <= 1", "1.01"});
  expect_error(make({-0.1, 0.9}), {"0 <= r_min", "-0.1"});
  expect_error(make({NAN, 0.9}), {"r_min nan"});
  expect_error(make({0.5, 0.9, 0}), {"max_phase", "got 0"});
  expect_error(make({0.5, 0.9, 7}), {"max_phase", "2 pi", "got 7"});
}

}  // namespace
}  // namespace convssm::ssm
