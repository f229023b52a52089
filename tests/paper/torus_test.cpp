// Section 3.3: convolutions are linear, so any ConvSSM is one large SSM on the flattened frames; on a torus its matrices
// are block-circulant, and its spectrum is the two-dimensional DFT of the kernels.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/cores/convs5.h"
#include "tests/paper/naive.h"
#include "tests/ssm/models.h"
#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::distance;
using testing::Edge;
using testing::kernel_matrix;
using testing::max_abs;
using testing::randn;

constexpr int64_t kTorusHeight = 4, kTorusWidth = 5;

// y of x_k = A x_{k-1} + B u_k, y_k = C x_k + D u_k with the matrices of the kernels; u [L,1,U,H,W].
at::Tensor run_large_ssm(ConvSSM& model, const at::Tensor& u, Edge edge) {
  const int64_t height = u.size(3), width = u.size(4);
  const auto matrix = [&](const at::Tensor& kernel) { return kernel_matrix(kernel, height, width, edge); };
  const at::Tensor a = matrix(model->a), b = matrix(model->b), c = matrix(model->c), d = matrix(model->d);
  at::Tensor x = at::zeros({a.size(0)}, at::kDouble);
  std::vector<at::Tensor> y;
  for (int64_t k = 0; k < u.size(0); ++k) {
    const at::Tensor u_k = u[k].flatten();
    x = at::mv(a, x) + at::mv(b, u_k);
    y.push_back((at::mv(c, x) + at::mv(d, u_k)).view({1, -1, height, width}));
  }
  return at::stack(y);
}

// How much the matrix changes when all frames are moved by one row or one column on the torus.
double change_under_shifts(const at::Tensor& matrix, int64_t P) {
  const at::Tensor m = matrix.view({P, kTorusHeight, kTorusWidth, P, kTorusHeight, kTorusWidth});
  return std::max(distance(m.roll({1, 1}, {1, 4}), m), distance(m.roll({1, 1}, {2, 5}), m));
}

// The largest distance from a value of one set to its partner in the other, each used once.
double set_distance(const at::Tensor& x, const at::Tensor& y) {
  if (x.numel() != y.numel()) return std::numeric_limits<double>::infinity();
  at::Tensor left = y.clone();
  double worst = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const at::Tensor gaps = at::abs(left - x[i]);
    const int64_t nearest = gaps.argmin().item<int64_t>();
    worst = std::max(worst, gaps[nearest].item<double>());
    left = at::cat({left.slice(0, 0, nearest), left.slice(0, nearest + 1)});
  }
  return worst;
}

// The eigenvalues of the P x P matrices that the kernel [P,P,k,k] is at each frequency of the torus.
at::Tensor dft_eigenvalues(const at::Tensor& kernel) {
  const int64_t k = kernel.size(2), r = k / 2;
  std::vector<at::Tensor> values;
  for (int64_t f = 0; f < kTorusHeight; ++f)
    for (int64_t g = 0; g < kTorusWidth; ++g) {
      at::Tensor sum = at::zeros({kernel.size(0), kernel.size(1)}, at::kComplexDouble);
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < k; ++j) {
          const double turn = double(f * (i - r)) / kTorusHeight + double(g * (j - r)) / kTorusWidth;
          sum = sum + kernel.select(3, j).select(2, i) * c10::complex<double>(std::polar(1.0, 2 * M_PI * turn));
        }
      values.push_back(at::linalg_eigvals(sum));
    }
  return at::cat(values);
}

TEST(LargeSSM, RunsLikeTheConvSSMOnBothBoundaries) {
  torch::NoGradGuard no_grad;
  const at::Tensor u = randn({8, 1, 2, kTorusHeight, kTorusWidth}, 2);
  for (const int64_t kernel_a : {1, 3}) {
    auto torus = testing::make(testing::small(kernel_a, Boundary::periodic));
    auto zero = testing::make(testing::small(kernel_a, Boundary::zero));
    EXPECT_LT(distance(torus->forward(u).first, run_large_ssm(torus, u, Edge::torus)), 1e-13);
    EXPECT_LT(distance(zero->forward(u).first, run_large_ssm(zero, u, Edge::zero)), 1e-13);
    EXPECT_GT(distance(zero->forward(u).first, run_large_ssm(zero, u, Edge::torus)), 1e-2);
  }
}

TEST(LargeSSM, IsBlockCirculantOnATorus) {
  torch::NoGradGuard no_grad;
  auto model = testing::make(testing::small(3, Boundary::periodic));
  EXPECT_LT(change_under_shifts(kernel_matrix(model->a, kTorusHeight, kTorusWidth, Edge::torus), 4), 1e-15);
  // With zeros outside of the frame it is not: an edge is an edge.
  EXPECT_GT(change_under_shifts(kernel_matrix(model->a, kTorusHeight, kTorusWidth, Edge::zero), 4), 1e-2);
}

TEST(LargeSSM, HasTheSpectrumOfTheKernelsDFT) {
  torch::NoGradGuard no_grad;
  auto model = testing::make(testing::small(3, Boundary::periodic));
  const at::Tensor frequencies = dft_eigenvalues(model->a);
  const auto spectrum = [&](Edge edge) {
    return at::linalg_eigvals(kernel_matrix(model->a, kTorusHeight, kTorusWidth, edge));
  };
  EXPECT_LT(set_distance(frequencies, spectrum(Edge::torus)), 1e-11);
  EXPECT_GT(set_distance(frequencies, spectrum(Edge::zero)), 1e-2);

  // So the largest eigenvalue of any frequency says how fast a state without input fades in the library.
  const double radius = max_abs(frequencies);
  const auto without_input = [&](int64_t frames, const at::Tensor& x) {
    return model->forward(at::zeros({frames, 1, 2, kTorusHeight, kTorusWidth}, at::kDouble), x).second;
  };
  const at::Tensor early = without_input(60, randn({1, 4, kTorusHeight, kTorusWidth}, 5));
  const at::Tensor late = without_input(100, early);
  EXPECT_NEAR(std::pow((late.norm() / early.norm()).item<double>(), 0.01), radius, 0.01 * radius);
}

// A pointwise state kernel has no edges: its matrix is the same block for every pixel, on a torus or not.
TEST(LargeSSM, OfAPointwiseStateKernelIsOneBlockPerPixel) {
  const at::Tensor kernel = randn({4, 4, 1, 1}, 6);
  const at::Tensor torus = kernel_matrix(kernel, kTorusHeight, kTorusWidth, Edge::torus);
  EXPECT_EQ(distance(torus, kernel_matrix(kernel, kTorusHeight, kTorusWidth, Edge::zero)), 0);
  EXPECT_EQ(distance(torus, at::kron(kernel.view({4, 4}), at::eye(kTorusHeight * kTorusWidth, at::kDouble))), 0);
}

// Zeros outside of the frame make their way inwards, r_B pixels at once and r_A with every frame; farther inside the
// states are those of a torus.
TEST(LargeSSM, OnZeroBordersIsThatOfATorusFarInside) {
  torch::NoGradGuard no_grad;
  const int64_t size = 13;
  auto options = testing::small(3, Boundary::zero);
  options.kernel_c = 1;
  auto model = testing::make(options);
  const at::Tensor u = randn({4, 1, 2, size, size}, 7), y = model->forward(u).first;
  const at::Tensor difference = at::abs(y - run_large_ssm(model, u, Edge::torus));
  for (int64_t k = 0; k < 4; ++k) {
    const auto inside = [&](int64_t depth) {
      return max_abs(difference[k].slice(2, depth, size - depth).slice(3, depth, size - depth));
    };
    EXPECT_LT(inside(k + 1), 1e-13) << k;
    EXPECT_GT(inside(k), 1e-6) << k;
  }
}

// The state space of ConvS5 has zero borders. On a frame that repeats, copies of one tile, its middle tile is what the
// large complex SSM gives on the torus of that tile.
TEST(LargeSSM, OfConvS5OnARepeatingFrameIsThatOfTheTorus) {
  torch::NoGradGuard no_grad;
  const int64_t U = 3, L = 6;
  cores::ConvS5SSM model(cores::ConvS5Options{.features = U, .state_size = 8}, Stream(3));
  model->to(at::kDouble);
  const at::Tensor tile = randn({L, U, kTorusHeight, kTorusWidth}, 8);
  const at::Tensor y = model->forward(tile.repeat({1, 1, 3, 3}), L, {}, {}).first;

  const auto p = model->named_parameters();
  const at::Tensor lambda = at::complex(p["Lambda_re"], p["Lambda_im"]), delta = p["log_step"].exp().squeeze(1);
  const at::Tensor a = at::exp(lambda * delta), P_axis = ((a - 1) / lambda).view({-1, 1, 1, 1});
  const at::Tensor b = P_axis * at::view_as_complex(p["B"]).view({-1, U, 3, 3});
  const at::Tensor c = at::view_as_complex(p["C"].contiguous()).permute({3, 2, 0, 1});
  const at::Tensor b_matrix = kernel_matrix(b, kTorusHeight, kTorusWidth, Edge::torus);
  const at::Tensor c_matrix = kernel_matrix(c, kTorusHeight, kTorusWidth, Edge::torus);
  const at::Tensor a_diagonal = a.repeat_interleave(kTorusHeight * kTorusWidth);
  at::Tensor x = at::zeros_like(a_diagonal);
  for (int64_t k = 0; k < L; ++k) {
    x = a_diagonal * x + at::mv(b_matrix, tile[k].flatten().to(at::kComplexDouble));
    const at::Tensor expected = 2 * at::real(at::mv(c_matrix, x)).view({U, kTorusHeight, kTorusWidth});
    const at::Tensor middle = y[k].slice(1, kTorusHeight, 2 * kTorusHeight).slice(2, kTorusWidth, 2 * kTorusWidth);
    EXPECT_LT(distance(middle, expected), 1e-13) << k;
    const at::Tensor corner = y[k].slice(1, 0, kTorusHeight).slice(2, 0, kTorusWidth);
    EXPECT_GT(distance(corner, expected), 1e-6) << k;
  }
}

}  // namespace
}  // namespace convssm::ssm
