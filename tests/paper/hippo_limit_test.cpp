// Appendix B.1: in the limit of infinite state the normal part of HiPPO-LegS gives the dynamics of the full matrix, for a
// single input. The full matrix's kernels are known in closed form, free of its size N:
//   e_n^T exp(A t) B = sqrt(2n+1) P_n(2 exp(-t) - 1) exp(-t),   P_n the Legendre polynomials, B_n = sqrt(2n+1).
// The normal part is given half of the input, B / 2.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/ssm/hippo.h"
#include "tests/paper/naive.h"
#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::max_abs;
using testing::series_exp;

constexpr int64_t kOutputs = 4;  // n = 0..3
constexpr double kStep = 0.05, kEnd = 8;

double legendre(int64_t n, double x) {
  double before = 1, now = x;
  if (n == 0) return before;
  for (int64_t k = 1; k < n; ++k) {
    const double next = ((2 * k + 1) * x * now - k * before) / (k + 1);
    before = now;
    now = next;
  }
  return now;
}

double legs_kernel(int64_t n, double t) {
  return std::sqrt(2 * n + 1.0) * legendre(n, 2 * std::exp(-t) - 1) * std::exp(-t);
}

at::Tensor legs_input(int64_t N) { return at::sqrt(2 * at::arange(N, at::kDouble) + 1); }

at::Tensor legs_matrix(int64_t N) {
  at::Tensor a = at::zeros({N, N}, at::kDouble);
  for (int64_t n = 0; n < N; ++n)
    for (int64_t k = 0; k <= n; ++k) a[n][k] = n == k ? -(n + 1.0) : -std::sqrt((2 * n + 1.0) * (2 * k + 1.0));
  return a;
}

// The answer at time t after it to a pulse of height 1 / hold that lasts for `hold`: what a held input sees of a kernel.
double legs_response(int64_t n, double t, double hold) {
  const int points = 400;  // midpoint rule
  double sum = 0;
  for (int i = 0; i < points; ++i) sum += legs_kernel(n, t + hold * (i + 0.5) / points);
  return sum / points;
}

// The largest difference between the responses of the normal part and of the full matrix, over the first outputs and t.
double distance_of_normal_part(int64_t N, double hold, double input_scale = 0.5) {
  const Spectrum s = hippo_spectrum(N, 1);
  const at::Tensor b = at::mv(s.v_inverse, (input_scale * legs_input(N)).to(at::kComplexDouble));
  const at::Tensor gain = (at::exp(s.lambda * hold) - 1) / (s.lambda * hold), c = s.v.slice(0, 0, kOutputs);
  double worst = 0;
  for (double t = 0; t <= kEnd; t += kStep) {
    const at::Tensor k = 2 * at::real(at::mv(c, at::exp(s.lambda * t) * gain * b));
    for (int64_t n = 0; n < kOutputs; ++n)
      worst = std::max(worst, std::abs(k[n].item<double>() - legs_response(n, t, hold)));
  }
  return worst;
}

// The oracle: the closed form is what the full matrix does, at any size.
TEST(HippoLimit, TheFullMatrixHasTheKernelsOfTheClosedForm) {
  for (const int64_t N : {4, 12}) {
    for (const double t : {0.1, 0.7, 2.0}) {
      const at::Tensor k = at::mv(series_exp(t * legs_matrix(N)), legs_input(N));
      for (int64_t n = 0; n < kOutputs; ++n)
        EXPECT_NEAR(k[n].item<double>(), legs_kernel(n, t), 1e-10) << N << " " << t;
    }
  }
}

// The full matrix is the normal one less p p^T of rank one, p_n = sqrt(n + 1/2): no small difference.
TEST(HippoLimit, TheTwoMatricesDifferByRankOneThatGrows) {
  for (const int64_t N : {4, 16}) {
    const at::Tensor p = at::sqrt(at::arange(N, at::kDouble) + 0.5), rank_one = at::outer(p, p);
    EXPECT_LT(max_abs(hippo_n_matrix(N) - rank_one - legs_matrix(N)), 1e-12);
    EXPECT_NEAR(rank_one.norm().item<double>(), N * N / 2.0, 1e-9);
  }
}

// The limit: for an input that is held for a while the two agree, the better the larger N, with an error of about 1/N. The
// half in B / 2 is what it takes: with the whole of B there is no limit.
TEST(HippoLimit, TheNormalPartAnswersAnInputLikeTheFullMatrix) {
  for (const double hold : {0.1, 0.3, 1.0}) {
    std::vector<double> sizes, errors;
    for (int64_t N = 16; N <= 512; N *= 2) {
      sizes.push_back(double(N));
      errors.push_back(distance_of_normal_part(N, hold));
    }
    for (size_t i = 1; i < errors.size(); ++i) EXPECT_LT(errors[i], 0.7 * errors[i - 1]) << hold << " " << sizes[i];
    EXPECT_NEAR(testing::fitted_exponent(sizes, errors), -1, 0.25) << hold;
    EXPECT_GT(distance_of_normal_part(512, hold, 1.0), 0.5) << hold;
  }
}

// What the limit does not say: the kernels themselves, at single times, stay apart. The fastest eigenvalue, whose
// frequency grows with N^2, keeps its weight of 1/pi in the first output; only an average over time is free of it.
TEST(HippoLimit, AtSingleTimesTheKernelsStayApart) {
  for (const int64_t N : {64, 512}) {
    const Spectrum s = hippo_spectrum(N, 1);
    const at::Tensor b = at::mv(s.v_inverse, (0.5 * legs_input(N)).to(at::kComplexDouble));
    const int64_t fastest = at::abs(s.lambda).argmax().item<int64_t>();
    EXPECT_NEAR(at::abs(s.v[0][fastest] * b[fastest]).item<double>(), 1 / M_PI, 1e-3) << N;
    EXPECT_GT(at::abs(s.lambda[fastest]).item<double>(), double(N * N) / 4) << N;
  }
}

}  // namespace
}  // namespace convssm::ssm
