// Continuous-time kernels: each discretization against the differential equation or rule it stands for.
#include "convssm/ssm/discretize_kernels.h"

#include "tests/ssm/models.h"
#include "tests/support.h"

namespace convssm::ssm {
namespace {

using testing::continuous;
using testing::distance;
using testing::error_text;
using testing::make;
using testing::randn;

// x' = diag(delta) (A x + B * u) over one frame with u held, by RK4 in small steps.
at::Tensor integrate(const ConvSSM& model, const at::Tensor& u, at::Tensor x) {
  const auto delta = at::exp(model->log_step).view({1, -1, 1, 1});
  const auto input = apply_kernel(model->b, u, Boundary::zero);
  const auto slope = [&](const at::Tensor& s) { return delta * (apply_kernel(model->a, s, Boundary::zero) + input); };
  const int steps = 200;
  const double h = 1.0 / steps;
  for (int i = 0; i < steps; ++i) {
    const auto k1 = slope(x), k2 = slope(x + h / 2 * k1), k3 = slope(x + h / 2 * k2), k4 = slope(x + h * k3);
    x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  }
  return x;
}

TEST(DiscretizeKernels, ZohIntegratesTheDifferentialEquation) {
  torch::NoGradGuard no_grad;
  for (const bool per_state : {false, true}) {
    auto model = make(continuous(Discretization::zoh, per_state));
    ASSERT_EQ(model->log_step.numel(), per_state ? 4 : 1);
    const auto u = randn({1, 2, 4, 3}, 3), x0 = randn({1, 4, 4, 3}, 4);
    EXPECT_LT(distance(model->step(u, x0).second, integrate(model, u, x0)), 1e-10);
  }
}

TEST(DiscretizeKernels, ScalarZohIsTheClosedFormAlsoForASingularA) {
  torch::NoGradGuard no_grad;
  auto options = continuous(Discretization::zoh, true);
  options.features = options.state_size = options.kernel_b = 1;
  for (const long double a : {-0.7L, -3.0L, 0.0L, 0.4L}) {
    auto model = make(options);
    model->a.fill_(static_cast<double>(a));
    const long double delta = std::exp(static_cast<long double>(model->log_step.item<double>()));
    const long double gain = a == 0 ? delta : std::expm1(a * delta) / a;
    const auto bar = model->kernels();
    EXPECT_NEAR(bar.a.item<double>(), static_cast<double>(std::exp(a * delta)), 5e-16);
    EXPECT_NEAR(bar.b.item<double>(), static_cast<double>(gain) * model->b.item<double>(), 5e-16);
  }
}

TEST(DiscretizeKernels, BilinearIsTheTrapezoidalRule) {
  torch::NoGradGuard no_grad;
  auto model = make(continuous(Discretization::bilinear, true));
  const auto u = randn({1, 2, 4, 3}, 3), x0 = randn({1, 4, 4, 3}, 4);
  const auto x1 = model->step(u, x0).second;
  const auto delta = at::exp(model->log_step).view({1, -1, 1, 1});
  const auto slope =
      apply_kernel(model->a, 0.5 * (x0 + x1), Boundary::zero) + apply_kernel(model->b, u, Boundary::zero);
  EXPECT_LT(distance(x1, x0 + delta * slope), 1e-14);
}

TEST(DiscretizeKernels, EulerIsOneExplicitStepForAnyKernel) {
  torch::NoGradGuard no_grad;
  for (const auto boundary : {Boundary::zero, Boundary::periodic}) {
    auto options = continuous(Discretization::euler, true, 3);
    options.boundary = boundary;
    auto model = make(options);
    const auto u = randn({1, 2, 4, 3}, 3), x0 = randn({1, 4, 4, 3}, 4);
    const auto delta = at::exp(model->log_step).view({1, -1, 1, 1});
    const auto slope = apply_kernel(model->a, x0, boundary) + apply_kernel(model->b, u, boundary);
    EXPECT_LT(distance(model->step(u, x0).second, x0 + delta * slope), 5e-15);
  }
}

TEST(DiscretizeKernels, RefusesWhatItCannotDo) {
  const auto text = [](const at::Tensor& a, const at::Tensor& b, const at::Tensor& delta, Discretization method) {
    return error_text([&] { discretize_kernels({a, b}, delta, method); });
  };
  const auto a = randn({2, 2, 1, 1}, 1), wide = randn({2, 2, 3, 3}, 1), b = randn({2, 1, 3, 3}, 1);
  const auto one = at::ones({1}, at::kDouble);
  const auto zoh = Discretization::zoh;
  EXPECT_NE(text(wide, b, one, zoh).find("zoh needs a pointwise (1x1) state kernel, got 3x3"), std::string::npos);
  EXPECT_NE(text(wide, b, one, Discretization::bilinear).find("use euler or kernel_a = 1"), std::string::npos);
  EXPECT_EQ(text(a, b, at::ones({3}, at::kDouble), zoh), "[discretize] delta must be [1] or [2], got [3]");
  EXPECT_EQ(text(a, randn({3, 1, 1, 1}, 1), one, zoh), "[discretize] b must be [2,U,k,k], got [3,1,1,1]");
  EXPECT_EQ(text(randn({2, 3, 1, 1}, 1), b, one, zoh), "[discretize] a must be [2,2,1,1], got [2,3,1,1]");
  EXPECT_NE(text(a, b, -one, zoh).find("got -1 at element 0"), std::string::npos);
}

}  // namespace
}  // namespace convssm::ssm
