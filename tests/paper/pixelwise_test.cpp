// Proposition 3 (section 3.3, appendix A.3), in continuous time and through discretization: with a pointwise state kernel
// every pixel follows the same SSM, whose matrices are the kernels reshaped, driven by the im2col of the input.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "tests/paper/naive.h"
#include "tests/ssm/models.h"
#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::distance;
using testing::Edge;
using testing::kernel_matrix;
using testing::randn;
using testing::series_exp;

constexpr int64_t kRows = 4, kColumns = 3;

// u [U,H,W] -> [U k k, H W]: what the kernel sees at every pixel, by index.
at::Tensor columns_of(const at::Tensor& u, int64_t k) {
  const int64_t U = u.size(0), H = u.size(1), W = u.size(2);
  at::Tensor columns = at::zeros({U, k, k, H, W}, at::kDouble);
  auto out = columns.accessor<double, 5>();
  const auto in = u.accessor<double, 3>();
  for (int64_t c = 0; c < U; ++c)
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < k; ++j)
        for (int64_t h = 0; h < H; ++h)
          for (int64_t w = 0; w < W; ++w) {
            const int64_t row = h + i - k / 2, column = w + j - k / 2;
            if (row >= 0 && row < H && column >= 0 && column < W) out[c][i][j][h][w] = in[c][row][column];
          }
  return columns.view({U * k * k, H * W});
}

// x(1) of x' = f(t, x) by the classical Runge-Kutta method.
at::Tensor integrate(const std::function<at::Tensor(double, const at::Tensor&)>& f, at::Tensor x, int steps) {
  const double h = 1.0 / steps;
  for (int i = 0; i < steps; ++i) {
    const double t = i * h;
    const at::Tensor k1 = f(t, x), k2 = f(t + h / 2, x + h / 2 * k1), k3 = f(t + h / 2, x + h / 2 * k2);
    x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(t + h, x + h * k3));
  }
  return x;
}

// The proposition itself: X' = A * X + B * U(t) as a whole and X'_ij = A_SSM X_ij + B_SSM im2col(U(t))_ij pixel by pixel
// are the same motion, for an input that changes all the time.
TEST(Proposition3InContinuousTime, EveryPixelFollowsOneDifferentialEquation) {
  torch::NoGradGuard no_grad;
  auto model = testing::make(testing::continuous(Discretization::zoh, false));
  const int64_t P = 4, k = model->b.size(2);
  const at::Tensor u0 = randn({2, kRows, kColumns}, 1), u1 = randn({2, kRows, kColumns}, 2);
  const at::Tensor start = randn({P, kRows, kColumns}, 3);
  const auto input = [&](double t) { return std::cos(3 * t) * u0 + std::sin(5 * t) * u1; };

  const at::Tensor a_large = kernel_matrix(model->a, kRows, kColumns, Edge::zero);
  const at::Tensor b_large = kernel_matrix(model->b, kRows, kColumns, Edge::zero);
  const auto whole = [&](double t, const at::Tensor& x) {
    return (at::mv(a_large, x.flatten()) + at::mv(b_large, input(t).flatten())).view({P, kRows, kColumns});
  };
  const at::Tensor a_ssm = model->a.view({P, P}), b_ssm = model->b.reshape({P, -1});
  const at::Tensor end = integrate(whole, start, 40);
  for (int64_t pixel = 0; pixel < kRows * kColumns; ++pixel) {
    const auto one = [&](double t, const at::Tensor& x) {
      return at::mv(a_ssm, x) + at::mv(b_ssm, columns_of(input(t), k).select(1, pixel).contiguous());
    };
    const at::Tensor x = integrate(one, start.view({P, -1}).select(1, pixel).contiguous(), 40);
    EXPECT_LT(distance(x, end.view({P, -1}).select(1, pixel)), 1e-13) << pixel;
  }
}

struct Matrices {
  at::Tensor a, b;
};

// DISCRETIZE of the SSM's matrices, written out.
Matrices discretize_matrices(const at::Tensor& a, const at::Tensor& b, const at::Tensor& delta, Discretization method) {
  const int64_t P = a.size(0), columns = b.size(1);
  const at::Tensor m = delta.view({-1, 1}) * a, db = delta.view({-1, 1}) * b, one = at::eye(P, at::kDouble);
  if (method == Discretization::euler) return {one + m, db};
  if (method == Discretization::bilinear) {
    const at::Tensor inverse = at::linalg_inv(one - 0.5 * m);
    return {at::mm(inverse, one + 0.5 * m), at::mm(inverse, db)};
  }
  const at::Tensor zeros = at::zeros({columns, P + columns}, at::kDouble);
  const at::Tensor both = series_exp(at::cat({at::cat({m, db}, 1), zeros}));
  return {both.slice(0, 0, P).slice(1, 0, P), both.slice(0, 0, P).slice(1, P)};
}

std::vector<ConvSSMOptions> continuous_models() {
  std::vector<ConvSSMOptions> all;
  for (const auto method : {Discretization::zoh, Discretization::bilinear, Discretization::euler})
    for (const bool per_state : {false, true}) all.push_back(testing::continuous(method, per_state));
  return all;
}

// Section 3.4 discretizes matrices and then reshapes them to kernels: the other order gives the same.
TEST(Proposition3InContinuousTime, ReshapeCommutesWithDiscretization) {
  torch::NoGradGuard no_grad;
  for (const auto& options : continuous_models()) {
    auto model = testing::make(options);
    const at::Tensor delta = model->log_step.exp().expand({4});
    const Matrices expected =
        discretize_matrices(model->a.view({4, 4}), model->b.reshape({4, -1}), delta, options.discretization);
    const Kernels kernels = model->kernels();
    EXPECT_LT(distance(kernels.a, expected.a.reshape(model->a.sizes())), 1e-13) << name(options.discretization);
    EXPECT_LT(distance(kernels.b, expected.b.reshape(model->b.sizes())), 1e-13) << name(options.discretization);
  }
}

// So the discrete ConvSSM is the discretized SSM at every pixel, frame after frame.
TEST(Proposition3InContinuousTime, DiscretizedItIsTheDiscretizedSSMOfEveryPixel) {
  torch::NoGradGuard no_grad;
  for (auto options : continuous_models()) {
    options.kernel_d = 0;
    options.kernel_c = 1;
    options.outputs = 4;
    auto model = testing::make(options);
    model->c.copy_(at::eye(4, at::kDouble).view({4, 4, 1, 1}));  // y = x
    const Matrices ssm = discretize_matrices(model->a.view({4, 4}), model->b.reshape({4, -1}),
                                             model->log_step.exp().expand({4}), options.discretization);
    const at::Tensor u = randn({6, 1, 2, kRows, kColumns}, 4), y = model->forward(u).first;
    at::Tensor x = at::zeros({4, kRows * kColumns}, at::kDouble);
    for (int64_t t = 0; t < 6; ++t) {
      x = at::mm(ssm.a, x) + at::mm(ssm.b, columns_of(u[t][0], options.kernel_b));
      EXPECT_LT(distance(y[t][0], x.view({4, kRows, kColumns})), 1e-13) << name(options.discretization) << " " << t;
    }
  }
}

// With an input that is held between frames, zero-order hold is no approximation: the discrete model passes through the
// points of the continuous one.
TEST(Proposition3InContinuousTime, ZeroOrderHoldPassesThroughTheContinuousMotion) {
  torch::NoGradGuard no_grad;
  auto options = testing::continuous(Discretization::zoh, true);
  options.kernel_d = 0;
  options.kernel_c = 1;
  options.outputs = 4;
  auto model = testing::make(options);
  model->c.copy_(at::eye(4, at::kDouble).view({4, 4, 1, 1}));
  const at::Tensor u = randn({4, 1, 2, kRows, kColumns}, 5), y = model->forward(u).first;
  const at::Tensor a = model->a.view({4, 4}), b = model->b.reshape({4, -1}), delta = model->log_step.exp().view({4, 1});
  at::Tensor x = at::zeros({4, kRows * kColumns}, at::kDouble);
  for (int64_t t = 0; t < 4; ++t) {
    const at::Tensor drive = at::mm(b, columns_of(u[t][0], options.kernel_b));
    x = integrate([&](double, const at::Tensor& state) { return delta * (at::mm(a, state) + drive); }, x, 100);
    EXPECT_LT(distance(y[t][0], x.view({4, kRows, kColumns})), 1e-9) << t;
  }
}

}  // namespace
}  // namespace convssm::ssm
