// Appendix B.2: a diagonal state kernel loses no expressivity against a full pointwise one, since almost all matrices
// diagonalize over the complex numbers. Matrices that do not, Jordan blocks, are the exception: near them the
// eigenvectors become parallel.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

#include "convssm/cores/convs5.h"
#include "convssm/ssm/hippo.h"
#include "tests/paper/naive.h"
#include "tests/ssm/models.h"
#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::distance;
using testing::max_abs;
using testing::randn;
using testing::series_exp;

// One of each conjugate pair of eigenvalues of a real matrix, real ones with half a weight: 2 Re C~ f(Lambda) B~ = C f(A) B.
Spectrum half_spectrum(const at::Tensor& a) {
  const auto [lambda, v] = at::linalg_eig(a);
  const at::Tensor v_inverse = at::linalg_inv(v), kept = at::nonzero(at::imag(lambda) <= 0).flatten();
  const at::Tensor weight = at::where(at::imag(lambda) == 0, 0.5, 1.0).to(at::kDouble);
  return {lambda.index_select(0, kept), (v * weight).index_select(1, kept), v_inverse.index_select(0, kept)};
}

double condition_of_eigenvectors(const at::Tensor& a) {
  const auto [lambda, v] = at::linalg_eig(a);
  const at::Tensor s = at::linalg_svdvals(v);
  return (s[0] / s[-1]).item<double>();
}

// 2 Re C~ exp(Lambda t) B~ = C exp(A t) B, for the spectrum that the library starts its random ablation from and for one
// that was solved here.
void expect_same_kernels(const at::Tensor& a, const Spectrum& s, uint64_t seed) {
  const int64_t N = a.size(0);
  const at::Tensor b = randn({N, 2}, 100 + seed), c = randn({3, N}, 200 + seed);
  const at::Tensor b_tilde = at::mm(s.v_inverse, b.to(at::kComplexDouble));
  const at::Tensor c_tilde = at::mm(c.to(at::kComplexDouble), s.v);
  const double condition = condition_of_eigenvectors(a);
  for (const double t : {0.0, 0.3, 1.0, 4.0}) {
    const at::Tensor full = at::mm(at::mm(c, series_exp(t * a)), b);
    const at::Tensor diagonal = 2 * at::real(at::mm(c_tilde * at::exp(s.lambda * t), b_tilde));
    EXPECT_LT(distance(diagonal, full), 1e-12 * condition * std::max(1.0, max_abs(full))) << seed << " " << t;
  }
}

TEST(Diagonalization, OfARandomMatrixLosesNothing) {
  std::vector<double> conditions;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const int64_t N = 3 + int64_t(seed % 8);
    const at::Tensor a = randn({N, N}, seed) / std::sqrt(double(N));
    expect_same_kernels(a, half_spectrum(a), seed);
    Stream stream(seed);
    const Spectrum drawn = gaussian_spectrum(N, stream);
    expect_same_kernels(2 * at::real(at::mm(drawn.v * drawn.lambda, drawn.v_inverse)), drawn, seed);
    conditions.push_back(condition_of_eigenvectors(a));
  }
  std::sort(conditions.begin(), conditions.end());
  EXPECT_LT(conditions[20], 100);
  EXPECT_LT(conditions.back(), 1e4);
}

// The library's own: a general ConvSSM with a full random state kernel, and the state space of ConvS5 with the eigenvalues
// of that kernel in its parameters, give the same video.
TEST(Diagonalization, ConvS5RunsAConvSSMWithAFullStateKernel) {
  torch::NoGradGuard no_grad;
  const int64_t U = 2, N = 6, L = 12;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    auto options = testing::continuous(Discretization::zoh, false);
    options.state_size = N;
    options.outputs = U;
    options.kernel_d = 0;
    auto full = testing::make(options, seed);
    const Spectrum s = half_spectrum(full->a.view({N, N}));
    const int64_t P = s.lambda.numel();

    cores::ConvS5SSM diagonal(cores::ConvS5Options{.features = U, .state_size = 2 * P, .clip_eigs = false}, Stream(1));
    diagonal->to(at::kDouble);
    auto p = diagonal->named_parameters();
    p["Lambda_re"].copy_(at::real(s.lambda));
    p["Lambda_im"].copy_(at::imag(s.lambda));
    p["log_step"].copy_(full->log_step.view({1, 1}).expand({P, 1}));
    p["B"].copy_(at::view_as_real(at::mm(s.v_inverse, full->b.reshape({N, -1}).to(at::kComplexDouble))));
    const at::Tensor c = at::einsum("unij,np->ijpu", {full->c.to(at::kComplexDouble), s.v}).contiguous();
    p["C"].copy_(at::view_as_real(c));

    const at::Tensor u = randn({L, 1, U, 5, 4}, 10 + seed);
    const at::Tensor y = diagonal->forward(u.flatten(0, 1), L, {}, {}).first.view(u.sizes());
    EXPECT_LT(distance(y, full->forward(u).first), 1e-12 * condition_of_eigenvectors(full->a.view({N, N}))) << seed;
  }
}

// A Jordan block of size m with e in its corner has m eigenvalues at distance e^(1/m) and a condition of e^(-(m-1)/m): it
// explodes as e falls. At e = 0 there is no basis of eigenvectors, and t exp(lambda t) is no sum of exponentials.
TEST(Diagonalization, FailsAtAJordanBlock) {
  for (const int64_t m : {2, 3}) {
    std::vector<double> inverse, conditions;
    for (double e = 1e-2; e > 1e-9; e /= 10) {
      at::Tensor a = -0.5 * at::eye(m, at::kDouble);
      for (int64_t i = 0; i + 1 < m; ++i) a[i][i + 1] = 1;
      a[m - 1][0] = e;
      inverse.push_back(1 / e);
      conditions.push_back(condition_of_eigenvectors(a));
    }
    EXPECT_NEAR(testing::fitted_exponent(inverse, conditions), double(m - 1) / m, 0.03) << m;
  }
  at::Tensor jordan = -0.5 * at::eye(3, at::kDouble);
  jordan[0][1] = jordan[1][2] = 1;
  EXPECT_GT(condition_of_eigenvectors(jordan), 1e12);
  const at::Tensor corner = series_exp(2.0 * jordan)[0][1];
  EXPECT_NEAR(corner.item<double>(), 2 * std::exp(-1.0), 1e-14);
}

}  // namespace
}  // namespace convssm::ssm
