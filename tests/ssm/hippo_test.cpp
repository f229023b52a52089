// HiPPO-N and Gaussian state matrices: values, orthogonality, and f(A) rebuilt from half of the spectrum.
#include "convssm/ssm/hippo.h"

#include <map>

#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::distance;
using testing::error_text;
using testing::max_abs;

// 2 Re(V f V^-1), or Re(V f V^-1) for a whole spectrum.
at::Tensor rebuild(const Spectrum& s, const at::Tensor& f, double factor = 2) {
  return factor * at::real(at::matmul(s.v * f, s.v_inverse)).contiguous();
}

TEST(Hippo, MatrixIsTheNormalPartOfLegS) {
  const int64_t size = 6;
  const auto s = hippo_n_matrix(size);
  for (int64_t n = 0; n < size; ++n) {
    for (int64_t k = 0; k < size; ++k) {
      // HiPPO-LegS: -sqrt(2n+1) sqrt(2k+1) below, -(n+1) on the diagonal; plus the rank-one p p^T.
      const double legs = n > k ? -std::sqrt((2.0 * n + 1) * (2.0 * k + 1)) : (n == k ? -(n + 1.0) : 0.0);
      const double rank_one = std::sqrt((n + 0.5) * (k + 0.5));
      EXPECT_NEAR(s[n][k].item<double>(), legs + rank_one, 1e-14) << n << "," << k;
    }
  }
  EXPECT_EQ(distance(s + s.t(), -at::eye(size, at::kDouble)), 0);
}

TEST(Hippo, EigenvaluesHaveThePublishedMagnitudes) {
  const std::map<int64_t, std::vector<double>> expected = {
      {4, {4.603293, 0.556501}},
      {8, {19.857410, 5.354209, 1.957794, 0.427489}},
      {16, {80.966081, 25.629226, 13.834342, 8.362105, 5.090024, 2.899668, 1.371989, 0.352018}}};
  for (const auto& [size, magnitudes] : expected) {
    const auto lambda = hippo_spectrum(size, 1).lambda;
    ASSERT_EQ(lambda.numel(), size / 2);
    EXPECT_EQ(distance(at::real(lambda), at::full({size / 2}, -0.5, at::kDouble)), 0);
    for (size_t i = 0; i < magnitudes.size(); ++i) {
      EXPECT_NEAR(at::imag(lambda)[i].item<double>(), -magnitudes[i], 5.1e-7) << size;
    }
  }
}

TEST(Hippo, LargestEigenvalueGrowsWithTheSquareOfTheBlock) {
  const std::map<int64_t, double> expected = {{32, 325.426}, {64, 1303.27}, {128, 5214.67}, {256, 20860.2}};
  for (const auto& [size, magnitude] : expected) {
    const double found = -at::imag(hippo_spectrum(size, 1).lambda)[0].item<double>();
    EXPECT_NEAR(found, magnitude, 6e-6 * magnitude);
    EXPECT_NEAR(found, size * size / M_PI - 0.52, 0.02);
  }
}

TEST(Hippo, IsStableUnlikeTheMatrixPrintedInThePaper) {
  const auto s = hippo_n_matrix(16);
  EXPECT_LT(max_abs(at::real(at::linalg_eigvals(s)) + 0.5), 1e-13);
  const auto printed = at::tril(s) + at::tril(s, -1).t();  // minus above the diagonal too
  EXPECT_EQ((at::linalg_eigvalsh(printed) > 0).sum().item<int64_t>(), 15);
}

TEST(Hippo, HalvesAreOrthonormalAndConjugate) {
  for (const auto& [size, blocks] : std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {16, 1}, {64, 1}, {64, 8}}) {
    const auto s = hippo_spectrum(size, blocks);
    const auto identity = at::eye(size / 2, at::kComplexDouble);
    EXPECT_LT(distance(at::matmul(s.v.mH(), s.v), identity), 1e-14);
    EXPECT_LT(max_abs(at::matmul(s.v.t(), s.v)), 5e-13);
    EXPECT_EQ(distance(s.v_inverse, s.v.mH()), 0);
  }
}

TEST(Hippo, HalfSpectrumRebuildsTheMatrixAndItsExponential) {
  for (const int64_t size : {2, 8, 32}) {
    const auto matrix = hippo_n_matrix(size);
    const auto s = hippo_spectrum(size, 1);
    EXPECT_LT(distance(rebuild(s, s.lambda), matrix), 1e-12);
    EXPECT_LT(distance(rebuild(s, at::exp(0.1 * s.lambda)), at::linalg_matrix_exp(0.1 * matrix)), 2e-13);
  }
}

TEST(Hippo, BlocksAreCopiesOfOneBlock) {
  const auto block = hippo_spectrum(8, 1), s = hippo_spectrum(24, 3);
  const std::vector<at::Tensor> copies(3, hippo_n_matrix(8));
  EXPECT_EQ(s.v.sizes(), at::IntArrayRef({24, 12}));
  EXPECT_EQ(s.v_inverse.sizes(), at::IntArrayRef({12, 24}));
  EXPECT_EQ(distance(s.lambda.view({3, 4}), block.lambda.expand({3, 4})), 0);
  EXPECT_LT(distance(rebuild(s, s.lambda), at::block_diag(copies)), 1e-13);
}

TEST(Hippo, WholeSpectrumAllowsOddSizes) {
  for (const int64_t size : {1, 7, 8}) {
    const auto s = hippo_spectrum(2 * size, 2, /*half=*/false);
    EXPECT_EQ(s.lambda.numel(), 2 * size);
    const std::vector<at::Tensor> copies(2, hippo_n_matrix(size));
    EXPECT_LT(distance(rebuild(s, s.lambda, 1), at::block_diag(copies)), 1e-13);
  }
}

TEST(Hippo, RefusesBadSizes) {
  EXPECT_EQ(error_text([] { hippo_spectrum(7, 1); }), "[hippo] state_size must be even with the half spectrum, got 7");
  EXPECT_EQ(error_text([] { hippo_spectrum(0, 1); }), "[hippo] state_size must be positive, got 0");
  EXPECT_EQ(error_text([] { hippo_spectrum(8, 0); }), "[hippo] blocks must be positive, got 0");
  EXPECT_EQ(error_text([] { hippo_spectrum(8, 3); }), "[hippo] blocks must divide state_size 8, got 3");
  EXPECT_EQ(error_text([] { hippo_spectrum(6, 2); }),
            "[hippo] state_size / blocks must be even with the half spectrum, got 6 / 2 = 3");
  EXPECT_EQ(error_text([] { hippo_n_matrix(-1); }), "[hippo] size must be positive, got -1");
}

// The matrix that gaussian_spectrum draws.
at::Tensor gaussian_matrix(int64_t size, Stream stream) {
  auto a = at::empty({size, size}, at::kDouble);
  for (int64_t i = 0; i < a.numel(); ++i) a.data_ptr<double>()[i] = stream.normal() / std::sqrt(double(size));
  return a;
}

TEST(GaussianSpectrum, RebuildsTheMatrixItDrew) {
  for (const int64_t size : {1, 2, 3, 8, 33, 64}) {
    Stream stream(5, "a", size);
    const auto a = gaussian_matrix(size, stream);
    const auto s = gaussian_spectrum(size, stream);
    EXPECT_LT(distance(rebuild(s, s.lambda), a), 5e-14) << size;
    EXPECT_LT(distance(rebuild(s, at::exp(0.3 * s.lambda)), at::linalg_matrix_exp(0.3 * a)), 5e-14) << size;
  }
}

TEST(GaussianSpectrum, KeepsOneOfEachPairAndEveryRealEigenvalue) {
  for (const int64_t size : {5, 16, 33}) {
    Stream stream(6, "a", size);
    const auto all = at::linalg_eigvals(gaussian_matrix(size, stream));
    const auto real = (at::imag(all) == 0).sum().item<int64_t>();
    const auto lambda = gaussian_spectrum(size, stream).lambda;
    EXPECT_EQ(lambda.numel(), (size + real) / 2);
    EXPECT_EQ((at::imag(lambda) == 0).sum().item<int64_t>(), real);
    EXPECT_LE(at::imag(lambda).max().item<double>(), 0);
    EXPECT_TRUE((at::diff(at::imag(lambda)) >= 0).all().item<bool>());
  }
}

TEST(GaussianSpectrum, DependsOnTheStreamOnly) {
  Stream first(1, "a"), again(1, "a"), other(2, "a");
  const auto lambda = gaussian_spectrum(12, first).lambda;
  EXPECT_EQ(distance(lambda, gaussian_spectrum(12, again).lambda), 0);
  EXPECT_GT(distance(lambda, gaussian_spectrum(12, other).lambda), 1e-3);
  EXPECT_EQ(error_text([&] { gaussian_spectrum(0, first); }), "[gaussian_spectrum] state_size must be positive, got 0");
}

}  // namespace
}  // namespace convssm::ssm
