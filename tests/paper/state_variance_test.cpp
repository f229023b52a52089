// Appendix B.1: the explicit discretization has a normalizing effect. A state x_k = a x_{k-1} + g u_k with white noise u
// has the variance |g|^2 / (1 - |a|^2). With g = 1 that is about 1 / (2 (1 - |a|)) and explodes as the time step Delta
// falls; zero-order hold has g of the size of Delta, and it does not.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <complex>

#include "convssm/cores/convs5.h"
#include "convssm/ops/scan.h"
#include "convssm/ssm/discretize.h"
#include "convssm/ssm/hippo.h"
#include "tests/paper/naive.h"
#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::randn;

const std::vector<double> kDeltas{1e-3, 3e-3, 1e-2, 3e-2, 1e-1};

// Eigenvalues of HiPPO and steps, every pair: [P] each.
struct Pairs {
  at::Tensor lambda, delta;
};

Pairs all_pairs() {
  const at::Tensor lambda = hippo_spectrum(8, 1).lambda, delta = at::tensor(kDeltas, at::kDouble);
  const int64_t n = lambda.numel(), m = delta.numel();
  return {lambda.repeat({m}), delta.repeat_interleave(n)};
}

// Of |x_L|^2 over all lanes [P], for x_k = a x_{k-1} + g u_k from zero with the same noise u [L,lanes] for all states.
at::Tensor measured_variance(const at::Tensor& a, const at::Tensor& g, const at::Tensor& u, int64_t chunk) {
  at::Tensor x;
  for (int64_t k = 0; k < u.size(0); k += chunk) {
    const at::Tensor b = u.slice(0, k, k + chunk).unsqueeze(-1).to(at::kComplexDouble) * g;
    x = ops::scan(a, b, x.defined() ? OptionalTensor(x) : OptionalTensor()).last;
  }
  return at::square(at::abs(x)).mean(0);
}

// |g|^2 (1 - |a|^(2L)) / (1 - |a|^2) with a = exp(z) and, unless g = 1, g = Delta (exp(z) - 1) / z.
double expected_variance(std::complex<double> lambda, double delta, bool normalized, int64_t L) {
  const std::complex<double> z = lambda * delta, a = std::exp(z);
  const double g = normalized ? std::abs((a - 1.0) / lambda) : 1;
  return g * g * (1 - std::pow(std::abs(a), 2 * L)) / (1 - std::norm(a));
}

TEST(StateVariance, ExplodesWithSmallStepsUnlessNormalized) {
  torch::NoGradGuard no_grad;
  const int64_t L = 3000, lanes = 400;
  const Pairs pairs = all_pairs();
  const Discrete d = discretize(pairs.lambda, pairs.delta, Discretization::zoh);
  const at::Tensor u = randn({L, lanes}, 9);
  const at::Tensor with = measured_variance(d.lambda_bar, d.gamma, u, 250);
  const at::Tensor without = measured_variance(d.lambda_bar, at::ones_like(d.gamma), u, 250);
  const int64_t eigenvalues = pairs.lambda.numel() / int64_t(kDeltas.size());
  for (int64_t n = 0; n < eigenvalues; ++n) {
    const std::complex<double> lambda(pairs.lambda[n].item<c10::complex<double>>());
    std::vector<double> blow_up, variances;
    for (size_t i = 0; i < kDeltas.size(); ++i) {
      const int64_t p = int64_t(i) * eigenvalues + n;
      const double normalized = with[p].item<double>(), plain = without[p].item<double>();
      EXPECT_NEAR(normalized / expected_variance(lambda, kDeltas[i], true, L), 1, 0.25) << n << " " << kDeltas[i];
      EXPECT_NEAR(plain / expected_variance(lambda, kDeltas[i], false, L), 1, 0.25) << n << " " << kDeltas[i];
      EXPECT_LT(normalized, 0.12) << n << " " << kDeltas[i];
      blow_up.push_back(1 / (1 - std::abs(std::exp(lambda * kDeltas[i]))));
      variances.push_back(plain);
    }
    EXPECT_NEAR(testing::fitted_exponent(blow_up, variances), 1, 0.1) << n;
    EXPECT_GT(variances[0], 700) << n;
  }
}

// A constant input takes a normalized state to -1 / lambda, whatever the step; without it to 1 / (1 - a), which explodes.
TEST(StateVariance, AConstantInputHasTheSameEffectAtEveryStep) {
  torch::NoGradGuard no_grad;
  const Pairs pairs = all_pairs();
  const Discrete d = discretize(pairs.lambda, pairs.delta, Discretization::zoh);
  const at::Tensor u = at::ones({40000, 1}, at::kDouble);
  const at::Tensor with = at::sqrt(measured_variance(d.lambda_bar, d.gamma, u, 10000));
  const at::Tensor without = at::sqrt(measured_variance(d.lambda_bar, at::ones_like(d.gamma), u, 10000));
  EXPECT_LT(testing::distance(with * at::abs(pairs.lambda), at::ones_like(with)), 1e-6);
  const at::Tensor expected = 1 / at::abs(1 - at::exp(pairs.lambda * pairs.delta));
  EXPECT_LT(testing::distance(without / expected, at::ones_like(with)), 1e-6);
  EXPECT_GT((without[3] / without[-1]).item<double>(), 50);  // the slowest rotation, Delta 1e-3 against 1e-1
}

// The states of a ConvS5 layer at its initial values, steps drawn from [1e-3, .1], white noise in all pixels: state p of
// a pixel with all of its neighbours has the variance |B_p|^2 |g_p|^2 / (1 - |a_p|^2).
TEST(StateVariance, OfConvS5AtInitialValues) {
  torch::NoGradGuard no_grad;
  const int64_t L = 300, B = 256, U = 3;
  cores::ConvS5SSM layer(cores::ConvS5Options{.features = U, .state_size = 12}, Stream(2));
  layer->to(at::kDouble);
  const at::Tensor x =
      layer->forward(randn({L * B, U, 3, 3}, 3), L, {}, {}).second.select(3, 1).select(2, 1);  // [B,2P]
  const at::Tensor squares = at::square(x).mean(0), measured = squares.slice(0, 0, 6) + squares.slice(0, 6);
  const auto p = layer->named_parameters();
  double sum = 0, sum_without = 0;
  for (int64_t n = 0; n < 6; ++n) {
    const std::complex<double> lambda(p["Lambda_re"][n].item<double>(), p["Lambda_im"][n].item<double>());
    const double delta = p["log_step"][n].exp().item<double>(), b2 = at::square(p["B"][n]).sum().item<double>();
    EXPECT_NEAR(measured[n].item<double>() / (b2 * expected_variance(lambda, delta, true, L)), 1, 0.3) << n;
    sum += measured[n].item<double>();
    sum_without += b2 * expected_variance(lambda, delta, false, L);
  }
  EXPECT_LT(sum, 1);
  EXPECT_GT(sum_without, 100);
}

}  // namespace
}  // namespace convssm::ssm
