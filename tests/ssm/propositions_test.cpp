// Propositions 1 to 3 of the paper as executable statements, on kernels and frames that loops over indices vouch for.
#include <bit>

#include "convssm/ssm/conv_operator.h"
#include "convssm/ssm/conv_ssm.h"
#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::distance;
using testing::error_text;
using testing::max_abs;
using testing::randn;

int64_t modulo(int64_t i, int64_t n) { return ((i % n) + n) % n; }

// y[o,h,w] = sum over c, i, j of a[o,c,i,j] x[c,h+i-r,w+j-r], by index.
at::Tensor apply_by_loops(const at::Tensor& a, const at::Tensor& x, Boundary boundary) {
  const int64_t r = (a.size(2) - 1) / 2, height = x.size(2), width = x.size(3);
  auto y = at::zeros({x.size(0), a.size(0), height, width}, at::kDouble);
  const auto av = a.accessor<double, 4>(), xv = x.accessor<double, 4>();
  auto yv = y.accessor<double, 4>();
  for (int64_t n = 0; n < x.size(0); ++n)
    for (int64_t o = 0; o < a.size(0); ++o)
      for (int64_t c = 0; c < a.size(1); ++c)
        for (int64_t h = 0; h < height; ++h)
          for (int64_t w = 0; w < width; ++w)
            for (int64_t i = 0; i < a.size(2); ++i)
              for (int64_t j = 0; j < a.size(3); ++j) {
                int64_t row = h + i - r, column = w + j - r;
                const bool inside = row >= 0 && row < height && column >= 0 && column < width;
                if (boundary == Boundary::zero && !inside) continue;
                yv[n][o][h][w] += av[o][c][i][j] * xv[n][c][modulo(row, height)][modulo(column, width)];
              }
  return y;
}

ScanElement element(int64_t k, uint64_t seed, int64_t p = 3, int64_t height = 6, int64_t width = 5) {
  const double scale = 1 / (k * std::sqrt(double(p)));
  return {scale * randn({p, p, k, k}, seed), randn({2, p, height, width}, seed + 1000)};
}

TEST(ApplyKernel, MatchesLoopsOnBothBoundaries) {
  const auto x = randn({2, 3, 5, 4}, 1);
  for (const int64_t k : {1, 2, 3, 4, 5, 7}) {
    const auto a = randn({2, 3, k, k}, k);
    for (const auto boundary : {Boundary::zero, Boundary::periodic}) {
      EXPECT_LT(distance(apply_kernel(a, x, boundary), apply_by_loops(a, x, boundary)), 2e-13) << k;
    }
  }
}

TEST(ApplyKernel, WrapsKernelsManyTimesWiderThanTheFrame) {
  for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 3}, {3, 1}}) {
    const auto x = randn({1, 2, height, width}, 3), a = randn({2, 2, 13, 13}, 4);
    EXPECT_LT(distance(apply_kernel(a, x, Boundary::periodic), apply_by_loops(a, x, Boundary::periodic)), 5e-13);
  }
}

TEST(Proposition1, CompositionIsTheCompanionOfApplication) {
  const auto f = randn({2, 3, 6, 5}, 7);
  for (const int64_t k_i : {1, 3, 5}) {
    for (const int64_t k_j : {1, 3, 5}) {
      const auto e = element(k_i, 10 + k_i).a, d = element(k_j, 20 + k_j).a;
      const auto composed = apply_kernel(compose_kernels(d, e), f, Boundary::periodic);
      const auto nested = apply_kernel(d, apply_kernel(e, f, Boundary::periodic), Boundary::periodic);
      EXPECT_LT(distance(composed, nested), 1e-14) << k_i << " " << k_j;
    }
  }
}

TEST(Proposition1, OperatorIsAssociative) {
  for (const int64_t k_i : {1, 3, 5}) {
    for (const int64_t k_j : {1, 3, 5}) {
      for (const int64_t k_k : {1, 3, 5}) {
        const auto c_i = element(k_i, 30 + k_i), c_j = element(k_j, 40 + k_j), c_k = element(k_k, 50 + k_k);
        const auto b = Boundary::periodic;
        const auto left = combine(combine(c_i, c_j, b), c_k, b);
        const auto right = combine(c_i, combine(c_j, c_k, b), b);
        EXPECT_LT(distance(left.a, right.a), 1e-14) << k_i << k_j << k_k;
        EXPECT_LT(distance(left.b, right.b), 1e-14) << k_i << k_j << k_k;
      }
    }
  }
}

TEST(Proposition1, PointwiseOperatorIsAssociativeOnAnyBoundary) {
  const auto c_i = element(1, 1), c_j = element(1, 2), c_k = element(1, 3);
  const auto left = combine(combine(c_i, c_j, Boundary::zero), c_k, Boundary::zero);
  const auto right = combine(c_i, combine(c_j, c_k, Boundary::zero), Boundary::zero);
  EXPECT_LT(distance(left.a, right.a), 1e-14);
  EXPECT_LT(distance(left.b, right.b), 1e-14);
}

TEST(Proposition1, FailsAtTheBordersOfAZeroPaddedFrame) {
  const auto a = element(3, 5).a, x = randn({1, 3, 8, 8}, 6);
  const auto composed = apply_kernel(compose_kernels(a, a), x, Boundary::zero);
  const auto nested = apply_kernel(a, apply_kernel(a, x, Boundary::zero), Boundary::zero);
  const auto difference = at::abs(composed - nested);
  EXPECT_GT(max_abs(difference), 0.1);
  EXPECT_LT(max_abs(difference.slice(2, 1, 7).slice(3, 1, 7)), 1e-14);
  const auto text = error_text([&] { combine({a, x}, {a, x}, Boundary::zero); });
  EXPECT_NE(text.find("composed 3x3 kernels are not exact on a zero boundary"), std::string::npos) << text;
  EXPECT_NE(text.find("use the sequential scan"), std::string::npos) << text;
  EXPECT_EQ(error_text([&] { scan_tree({{a, x}}, Boundary::zero); }), text);
}

TEST(Proposition1, ComposedKernelsGrowByTheirWidthLessOne) {
  for (const int64_t k : {1, 3, 5}) {
    const auto a = element(k, k).a;
    auto product = a;
    EXPECT_EQ(compose_kernels(a, a).size(2), 2 * k - 1);
    for (int64_t n = 2; n <= 6; ++n) {
      product = compose_kernels(a, product);
      EXPECT_EQ(product.sizes(), at::IntArrayRef({3, 3, n * (k - 1) + 1, n * (k - 1) + 1}));
    }
  }
}

TEST(Proposition1, TreeScanEqualsTheRecurrence) {
  for (const int64_t k : {1, 3}) {
    for (int64_t length = 1; length <= 17; length += (length < 9 ? 1 : 4)) {
      std::vector<ScanElement> elements;  // a different kernel at every step
      for (int64_t i = 0; i < length; ++i) elements.push_back(element(k, 100 + i));
      const auto expected = scan_sequential(elements, Boundary::periodic);
      const auto found = scan_tree(elements, Boundary::periodic);
      EXPECT_LT(distance(at::stack(found), at::stack(expected)), 5e-14) << k << " " << length;
    }
  }
}

TEST(Proposition1, MismatchedKernelsAreRefused) {
  EXPECT_EQ(error_text([] {
              compose_kernels(randn({2, 2, 2, 2}, 1), randn({2, 2, 3, 3}, 1));
            }),
            "[compose_kernels] a_j must have odd widths, got [2,2,2,2]");
  EXPECT_EQ(error_text([] {
              apply_kernel(randn({2, 2, 3}, 1), randn({1, 2, 3, 3}, 1), Boundary::zero);
            }),
            "[apply_kernel] a must be [O,P,k,k], got [2,2,3]");
  EXPECT_EQ(error_text([] { scan_sequential({}, Boundary::zero); }),
            "[conv_operator] the scan needs at least one element, got 0");
}

Macs count(int64_t length, int64_t k, int64_t p, int64_t height, int64_t width) {
  Macs macs;
  scan_tree(std::vector<ScanElement>(length, element(k, 1, p, height, width)), Boundary::periodic, &macs);
  return macs;
}

TEST(Proposition2, CostOfOneOperatorIsTheCountOfItsProducts) {
  Macs macs;
  const auto q_i = element(3, 1, 4, 6, 5), q_j = element(5, 2, 4, 6, 5);
  combine(q_i, q_j, Boundary::periodic, &macs);
  EXPECT_EQ(macs.compose, 4 * 4 * 4 * 9 * 25);
  EXPECT_EQ(macs.apply, 2 * 4 * 4 * 25 * 6 * 5);
}

// Over the levels of the tree, n = L, L/2, ..., 1: n - 1 applications and n/2 - 1 compositions each.
TEST(Proposition2, PointwiseScanDoesExactlyThisManyMultiplyAdds) {
  for (const int64_t length : {1, 2, 3, 4, 7, 8, 13, 31, 32}) {
    const auto bits = std::popcount(static_cast<uint64_t>(length));
    const auto halvings = std::bit_width(static_cast<uint64_t>(length)) - 1;
    const int64_t compositions = length - bits - halvings;
    const int64_t applications = 2 * length - bits - halvings - 1;
    const auto macs = count(length, 1, 3, 4, 2);
    EXPECT_EQ(macs.compose, compositions * 27) << length;
    EXPECT_EQ(macs.apply, applications * 2 * 9 * 8) << length;
  }
}

double exponent(int64_t small, int64_t large, double ratio) {
  return std::log(double(large) / small) / std::log(ratio);
}

TEST(Proposition2, PointwiseCostGrowsAsLTimesP3PlusP2HW) {
  const auto base = count(64, 1, 2, 4, 4);
  const auto longer = count(512, 1, 2, 4, 4), wider = count(64, 1, 8, 4, 4), larger = count(64, 1, 2, 16, 16);
  EXPECT_NEAR(exponent(base.compose, longer.compose, 8), 1, 0.05);
  EXPECT_NEAR(exponent(base.apply, longer.apply, 8), 1, 0.03);
  EXPECT_EQ(exponent(base.compose, wider.compose, 4), 3);
  EXPECT_EQ(exponent(base.apply, wider.apply, 4), 2);
  EXPECT_EQ(larger.compose, base.compose);
  EXPECT_EQ(exponent(base.apply, larger.apply, 16), 1);
  EXPECT_LT(longer.total(), 2 * 512 * (2 * 2 * 2 + 2 * 2 * 2 * 16));
}

TEST(Proposition2, WideKernelsCostMoreThanLinearInLength) {
  EXPECT_GT(exponent(count(16, 3, 1, 2, 2).compose, count(32, 3, 1, 2, 2).compose, 2), 3);
  EXPECT_GT(exponent(count(16, 3, 1, 2, 2).apply, count(32, 3, 1, 2, 2).apply, 2), 1.5);
}

// x_{k,ij} = A_SSM x_{k-1,ij} + B_SSM im2col(u_k)_ij, pixel by pixel, with the kernels reshaped to matrices.
at::Tensor per_pixel_ssm(const at::Tensor& a, const at::Tensor& b, const at::Tensor& u) {
  const int64_t p = a.size(0), k = b.size(2), height = u.size(3), width = u.size(4);
  const auto a_ssm = a.reshape({p, p}), b_ssm = b.reshape({p, -1});
  auto states = at::zeros({u.size(0), u.size(1), p, height * width}, at::kDouble);
  for (int64_t n = 0; n < u.size(1); ++n) {
    for (int64_t pixel = 0; pixel < height * width; ++pixel) {
      auto x = at::zeros({p}, at::kDouble);
      for (int64_t t = 0; t < u.size(0); ++t) {
        const auto columns = at::im2col(u[t].narrow(0, n, 1), {k, k}, {1, 1}, {k / 2, k / 2}, {1, 1})[0];
        x = at::mv(a_ssm, x) + at::mv(b_ssm, columns.select(1, pixel));
        states[t][n].select(1, pixel).copy_(x);
      }
    }
  }
  return states.view({u.size(0), u.size(1), p, height, width});
}

TEST(Proposition3, PointwiseConvSSMIsAnSSMAtEveryPixel) {
  torch::NoGradGuard no_grad;
  for (const int64_t kernel_b : {1, 3, 5}) {
    Stream stream(11, "model");
    ConvSSMOptions options;
    options.features = 2;
    options.outputs = options.state_size = 4;
    options.kernel_b = kernel_b;
    options.kernel_c = 1;
    ConvSSM model(options, stream);
    model->to(at::kDouble);
    model->c.copy_(at::eye(4, at::kDouble).view({4, 4, 1, 1}));  // y = x
    const auto u = randn({5, 2, 2, 4, 3}, 12);
    const auto expected = per_pixel_ssm(model->a, model->b, u);
    for (const auto algorithm : {Evaluation::sequential, Evaluation::parallel}) {
      EXPECT_LT(distance(model->forward(u, {}, algorithm).first, expected), 1e-14);
    }
  }
}

}  // namespace
}  // namespace convssm::ssm
