// Initial values: their statistics, their bounds, their layout, and that the projected B~ and C~ describe the real
// system they came from.
#include "convssm/ssm/initializers.h"

#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::distance;
using testing::error_text;
using testing::max_abs;

constexpr int64_t many = 400000;

double std_of(const at::Tensor& x) { return x.to(at::kDouble).std().item<double>(); }
double mean_of(const at::Tensor& x) { return x.to(at::kDouble).mean().item<double>(); }

// Four standard errors. The error of a standard deviation is std * sqrt((kurtosis - 1) / 4n), with kurtosis <= 3.
void expect_spread(const at::Tensor& x, double std) {
  const double n = static_cast<double>(x.numel());
  EXPECT_NEAR(std_of(x), std, 4 * std / std::sqrt(2 * n));
  EXPECT_NEAR(mean_of(x), 0, 4 * std / std::sqrt(n));
}

TEST(Initializers, TruncatedNormalHasTheStdItWasAskedFor) {
  Stream stream(1, "init");
  const auto x = truncated_normal({many}, 0.3, stream);
  EXPECT_EQ(x.scalar_type(), at::kFloat);
  expect_spread(x, 0.3);
  const double bound = 2 * 0.3 / 0.87962566103423978;
  EXPECT_LE(max_abs(x), bound * (1 + 1e-7));
  EXPECT_GT(max_abs(x), bound * 0.999);
}

TEST(Initializers, NormalIsNotTruncated) {
  Stream stream(2, "init");
  const auto x = normal({many}, 0.3, stream);
  expect_spread(x, 0.3);
  EXPECT_GT(max_abs(x), 4 * 0.3);
}

TEST(Initializers, VarianceScalingDividesByFanIn) {
  Stream stream(3, "init");
  expect_spread(lecun_normal({many}, 27, stream), std::sqrt(1.0 / 27));
  expect_spread(he_normal({many}, 27, stream), std::sqrt(2.0 / 27));
  expect_spread(variance_scaling({many}, 0.2, 16, true, stream), std::sqrt(0.2 / 16));
  const auto untruncated = variance_scaling({many}, 0.2, 16, false, stream);
  expect_spread(untruncated, std::sqrt(0.2 / 16));
  EXPECT_GT(max_abs(untruncated), 4 * std::sqrt(0.2 / 16));
}

TEST(Initializers, LogStepIsUniformBetweenTheLogs) {
  Stream stream(4, "init");
  const auto x = init_log_step(20000, 1e-3, 1e-1, stream);
  EXPECT_EQ(x.sizes(), at::IntArrayRef({20000, 1}));
  EXPECT_EQ(x.scalar_type(), at::kFloat);
  const double width = std::log(100.0), error = width / std::sqrt(12.0 * 20000);
  EXPECT_NEAR(mean_of(x), std::log(1e-2), 4 * error);
  EXPECT_GE(x.min().item<double>(), std::log(1e-3) - 1e-6);
  EXPECT_LE(x.max().item<double>(), std::log(1e-1) + 1e-6);
  EXPECT_NEAR(std_of(x), width / std::sqrt(12.0), 0.02);
}

TEST(Initializers, DependOnTheStreamOnly) {
  const auto s = hippo_spectrum(8, 2);
  const auto draw = [&](uint64_t seed) {
    Stream stream(seed, "init");
    return at::cat({init_conv_b(s, 3, 3, stream).flatten(), init_conv_c(s, 3, 3, stream).flatten(),
                    init_s5_b(s, 3, stream).flatten(), init_s5_c(s, 3, stream).flatten(),
                    init_log_step(4, 1e-3, 1e-1, stream).flatten(), he_normal({5}, 2, stream)});
  };
  EXPECT_EQ(distance(draw(1), draw(1)), 0);
  EXPECT_GT(distance(draw(1), draw(2)), 0.1);
}

// The real draws behind B~ and C~, in the order in which they leave the stream.
at::Tensor truncated_draws(at::IntArrayRef shape, double std, Stream stream) {
  auto x = at::empty(shape, at::kDouble);
  const double scale = std / 0.87962566103423978;
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<double>()[i] = scale * stream.truncated_normal(2);
  return x;
}

at::Tensor from_pairs(const at::Tensor& x) { return at::view_as_complex(x.to(at::kDouble).contiguous()); }

struct Case {
  const char* label;
  Spectrum spectrum;
  at::Tensor a;  // the real state matrix
};

std::vector<Case> cases() {
  Stream stream(9, "a");
  const auto gaussian = gaussian_spectrum(9, stream);
  const auto a = 2 * at::real(at::matmul(gaussian.v * gaussian.lambda, gaussian.v_inverse)).contiguous();
  const std::vector<at::Tensor> blocks(3, hippo_n_matrix(4));
  return {{"hippo", hippo_spectrum(8, 1), hippo_n_matrix(8)},
          {"blocks", hippo_spectrum(12, 3), at::block_diag(blocks)},
          {"gaussian", gaussian, a}};
}

// 2 Re(C~ f(Lambda) B~) = C0 f(A) B0 with f = exp(delta .), for every pair of taps; float32 storage sets the tolerance.
TEST(Initializers, ConvBAndCDescribeTheRealSystem) {
  const int64_t features = 3, kernel = 3, columns = features * kernel * kernel;
  const double delta = 0.07;
  for (const auto& [label, spectrum, a] : cases()) {
    const int64_t n = a.size(0), p = spectrum.lambda.size(0);
    Stream stream_b(1, "b"), stream_c(1, "c");
    const auto b0 = truncated_draws({n, columns}, std::sqrt(2.0 / columns), stream_b);
    const auto c0 = truncated_draws({columns, n}, std::sqrt(2.0 / (n * kernel * kernel)), stream_c);
    const auto b = init_conv_b(spectrum, features, kernel, stream_b);
    const auto c = init_conv_c(spectrum, features, kernel, stream_c);
    ASSERT_EQ(b.sizes(), at::IntArrayRef({p, columns, 2})) << label;
    ASSERT_EQ(c.sizes(), at::IntArrayRef({kernel, kernel, p, features, 2})) << label;

    const auto c_rows = from_pairs(c).permute({3, 0, 1, 2}).reshape({columns, p});
    const auto found = 2 * at::real(at::matmul(c_rows * at::exp(delta * spectrum.lambda), from_pairs(b)));
    const auto expected = at::matmul(at::matmul(c0, at::linalg_matrix_exp(delta * a)), b0);
    EXPECT_LT(distance(found, expected), 3e-7 * std::max(1.0, max_abs(expected))) << label;
  }
}

TEST(Initializers, S5BAndCDescribeTheRealSystem) {
  const int64_t features = 5;
  for (const auto& [label, spectrum, a] : cases()) {
    const int64_t n = a.size(0), p = spectrum.lambda.size(0);
    Stream stream_b(1, "b"), stream_c(1, "c");
    const auto b0 = truncated_draws({n, features}, std::sqrt(1.0 / n), stream_b);
    const auto c0 = at::view_as_complex(truncated_draws({features, n, 2}, std::sqrt(1.0 / n), stream_c));
    const auto b = init_s5_b(spectrum, features, stream_b);
    const auto c = init_s5_c(spectrum, features, stream_c);
    ASSERT_EQ(b.sizes(), at::IntArrayRef({p, features, 2})) << label;
    ASSERT_EQ(c.sizes(), at::IntArrayRef({features, p, 2})) << label;
    EXPECT_LT(distance(from_pairs(c), at::matmul(c0, spectrum.v)), 3e-7) << label;
    EXPECT_LT(distance(from_pairs(b), at::matmul(spectrum.v_inverse, b0.to(at::kComplexDouble))), 3e-7) << label;
  }
}

TEST(Initializers, RefuseBadSizes) {
  Stream stream(1);
  const auto s = hippo_spectrum(4, 1);
  EXPECT_EQ(error_text([&] { lecun_normal({2}, 0, stream); }), "[initializers] fan_in must be positive, got 0");
  EXPECT_EQ(error_text([&] { normal({2}, -1, stream); }), "[initializers] std must be finite and not negative, got -1");
  EXPECT_EQ(error_text([&] { init_log_step(4, 0, 1, stream); }), "[initializers] dt_min must be positive, got 0");
  EXPECT_EQ(error_text([&] { init_log_step(4, 1, 0.5, stream); }),
            "[initializers] dt_max must be finite and at least dt_min = 1, got 0.5");
  EXPECT_EQ(error_text([&] { init_conv_b(s, 0, 3, stream); }), "[initializers] features must be positive, got 0");
  EXPECT_EQ(error_text([&] { init_conv_c(s, 2, 0, stream); }), "[initializers] kernel must be positive, got 0");
}

}  // namespace
}  // namespace convssm::ssm
