// The general ConvSSM: all algorithms agree, its discretizations integrate the differential equation, its
// gradients are right.
#include "convssm/ssm/conv_ssm.h"

#include "tests/ssm/models.h"
#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::continuous;
using testing::distance;
using testing::error_text;
using testing::gradient_error;
using testing::make;
using testing::randn;
using testing::small;

std::vector<ConvSSMOptions> all_kinds() {
  auto even = small(3, Boundary::periodic);
  even.kernel_b = 2;
  even.kernel_c = 4;
  return {small(1, Boundary::zero),
          small(1, Boundary::periodic),
          small(3, Boundary::zero),
          small(3, Boundary::periodic),
          even,
          continuous(Discretization::zoh, true),
          continuous(Discretization::bilinear, false),
          continuous(Discretization::euler, true, 3)};
}

bool can_be_parallel(const ConvSSMOptions& o) { return o.kernel_a == 1 || o.boundary == Boundary::periodic; }

TEST(ConvSSM, ForwardEqualsStepsEqualsParallel) {
  torch::NoGradGuard no_grad;
  for (const auto& options : all_kinds()) {
    auto model = make(options);
    for (int64_t length = 1; length <= 9; ++length) {
      const auto u = randn({length, 2, 2, 5, 3}, length), x0 = randn({2, 4, 5, 3}, 77);
      const auto [y, last] = model->forward(u, x0);
      auto x = x0;
      for (int64_t k = 0; k < length; ++k) {
        const auto [y_k, next] = model->step(u[k], x);
        EXPECT_LT(distance(y_k, y[k]), 1e-14);
        x = next;
      }
      EXPECT_LT(distance(x, last), 1e-14);
      if (!can_be_parallel(options)) continue;
      const auto [y_parallel, last_parallel] = model->forward(u, x0, Evaluation::parallel);
      EXPECT_LT(distance(y_parallel, y), 1e-14);
      EXPECT_LT(distance(last_parallel, last), 1e-14);
    }
  }
}

TEST(ConvSSM, SplittingAnywhereChangesNothing) {
  torch::NoGradGuard no_grad;
  for (const auto& options : all_kinds()) {
    auto model = make(options);
    const auto u = randn({7, 1, 2, 4, 5}, 5);
    const auto [y, last] = model->forward(u);
    for (const auto algorithm : {Evaluation::sequential, Evaluation::parallel}) {
      if (algorithm == Evaluation::parallel && !can_be_parallel(options)) continue;
      for (int64_t cut = 1; cut < 7; ++cut) {
        const auto [y_first, middle] = model->forward(u.slice(0, 0, cut), {}, algorithm);
        const auto [y_second, end] = model->forward(u.slice(0, cut), middle, algorithm);
        EXPECT_LT(distance(at::cat({y_first, y_second}), y), 1e-14);
        EXPECT_LT(distance(end, last), 1e-14);
      }
    }
  }
}

TEST(ConvSSM, IsTheRecurrenceOfThePaper) {
  torch::NoGradGuard no_grad;
  auto model = make(small(3, Boundary::zero));
  const auto u = randn({3, 1, 2, 6, 6}, 8);
  const auto conv = [](const at::Tensor& x, const at::Tensor& w) { return at::conv2d(x, w, {}, 1, w.size(2) / 2); };
  auto x = at::zeros({1, 4, 6, 6}, at::kDouble);
  const auto y = model->forward(u).first;
  for (int64_t k = 0; k < 3; ++k) {
    x = conv(x, model->a) + conv(u[k], model->b);
    EXPECT_LT(distance(y[k], conv(x, model->c) + conv(u[k], model->d)), 1e-14);
  }
}

TEST(ConvSSM, GradientsMatchFiniteDifferences) {
  for (const auto& options : all_kinds()) {
    auto model = make(options);
    const auto u = randn({3, 1, 2, 3, 3}, 5), x0 = randn({1, 4, 3, 3}, 6);
    const auto weight_y = randn({3, 1, 3, 3, 3}, 7), weight_x = randn({1, 4, 3, 3}, 8);
    std::vector<at::Tensor> inputs{u, x0};
    for (const auto& parameter : model->parameters()) inputs.push_back(parameter);
    for (const auto algorithm : {Evaluation::sequential, Evaluation::parallel}) {
      if (algorithm == Evaluation::parallel && !can_be_parallel(options)) continue;
      const auto loss = [&] {
        const auto [y, x] = model->forward(u, x0, algorithm);
        return (weight_y * y).sum() + (weight_x * at::tanh(x)).sum();
      };
      EXPECT_LT(gradient_error(loss, inputs), 1e-10);
    }
  }
}

TEST(ConvSSM, StartsAsAContraction) {
  torch::NoGradGuard no_grad;
  for (const int64_t kernel : {1, 3, 5}) {
    for (const auto boundary : {Boundary::zero, Boundary::periodic}) {
      auto model = make(small(kernel, boundary));
      for (uint64_t seed = 0; seed < 10; ++seed) {
        const auto x = randn({1, 4, 6, 6}, seed);
        EXPECT_LE(apply_kernel(model->a, x, boundary).norm().item<double>(), 0.9 * x.norm().item<double>());
      }
    }
  }
}

TEST(ConvSSM, StartsStableInContinuousTime) {
  torch::NoGradGuard no_grad;
  for (const auto method : {Discretization::zoh, Discretization::bilinear, Discretization::euler}) {
    auto model = make(continuous(method, true), 3);
    EXPECT_LE(at::real(at::linalg_eigvals(model->a.flatten(1))).max().item<double>(), -0.1);
    const auto radius = at::abs(at::linalg_eigvals(model->kernels().a.flatten(1))).max().item<double>();
    EXPECT_LT(radius, 1);
  }
}

TEST(ConvSSM, HasTheParametersOfItsOptions) {
  auto options = small(3, Boundary::zero);
  options.outputs = 0;
  options.kernel_d = 0;
  Stream stream(1, "model"), again(1, "model");
  ConvSSM model(options, stream), twin(options, again);
  EXPECT_EQ(model->parameters().size(), 3u);
  EXPECT_EQ(model->a.scalar_type(), at::kFloat);
  EXPECT_EQ(model->c.sizes(), at::IntArrayRef({2, 4, 3, 3}));
  EXPECT_EQ(distance(model->a, twin->a), 0);
  EXPECT_EQ(make(continuous(Discretization::zoh, false))->parameters().size(), 5u);
}

TEST(ConvSSM, RefusesBadOptions) {
  const auto text = [](auto change) {
    auto options = small(1, Boundary::zero);
    change(options);
    return error_text([&] { make(options); });
  };
  EXPECT_EQ(text([](auto& o) { o.kernel_a = 4; }), "[conv_ssm] kernel_a must be odd, got 4");
  EXPECT_EQ(text([](auto& o) { o.features = 0; }), "[conv_ssm] features must be positive, got 0");
  EXPECT_EQ(text([](auto& o) { o.state_size = -1; }), "[conv_ssm] state_size must be positive, got -1");
  EXPECT_EQ(text([](auto& o) { o.kernel_b = 0; }), "[conv_ssm] kernel_b must be positive, got 0");
  EXPECT_EQ(
      text([](auto& o) {
        o.kernel_a = 3;
        o.time = TimeDomain::continuous;
      }),
      "[conv_ssm] zoh needs a pointwise state kernel, got kernel_a = 3; use euler, discrete time or kernel_a = 1");
}

TEST(ConvSSM, RefusesBadInputs) {
  auto model = make(small(3, Boundary::zero));
  const auto text = [&](const at::Tensor& u, const at::Tensor& x0 = {}) {
    return error_text([&] { model->forward(u, x0); });
  };
  EXPECT_EQ(text(randn({0, 1, 2, 4, 4}, 1)), "[conv_ssm] u must be [L,B,U,H,W] with no size 0, got [0,1,2,4,4]");
  EXPECT_EQ(text(randn({1, 2, 4, 4}, 1)), "[conv_ssm] u must be [L,B,U,H,W], got [1,2,4,4]");
  EXPECT_EQ(text(randn({1, 1, 3, 4, 4}, 1)), "[conv_ssm] u must be [L,B,2,H,W], got [1,1,3,4,4]");
  EXPECT_EQ(text(randn({1, 1, 2, 4, 4}, 1).to(at::kFloat)), "[conv_ssm] u must be float64, got float32");
  EXPECT_EQ(text(randn({1, 1, 2, 4, 4}, 1), randn({1, 4, 4, 5}, 1)),
            "[conv_ssm] the state must be [1,4,4,4], got [1,4,4,5]");
  EXPECT_EQ(error_text([&] {
              model->step(randn({1, 3, 4, 4}, 1), {});
            }),
            "[conv_ssm] u must be [B,2,H,W], got [1,3,4,4]");
}

TEST(ConvSSM, RefusesTheParallelFormWhereItWouldBeWrong) {
  auto model = make(small(3, Boundary::zero));
  for (const int64_t length : {1, 4}) {
    const auto text = error_text([&] { model->forward(randn({length, 1, 2, 4, 4}, 1), {}, Evaluation::parallel); });
    EXPECT_NE(text.find("what leaves the frame is cut off"), std::string::npos) << text;
    EXPECT_NE(text.find("a 1x1 state kernel or the periodic boundary"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace convssm::ssm
