// Elementwise activations against their definitions, forward and backward, with and without the optional arrays.
#include "convssm/ops/activation_kernels.h"

#include "tests/ops/kernels/activations.h"

namespace convssm::ops::testing {
namespace {

template <typename T>
void check_forward(Activation activation, int64_t size, bool add, bool keep_sum) {
  const auto x = normals<T>(size, 1, 3), y = normals<T>(size, 2);
  auto sum = unwritten<T>(size), out = unwritten<T>(size);
  activate_loop(ActivateLoop<T>{activation, x.data(), add ? y.data() : nullptr, keep_sum ? sum.data() : nullptr,
                                out.data(), size});
  std::vector<double> sums, expected;
  for (size_t i = 0; i < x.size(); ++i) {
    sums.push_back(static_cast<double>(x[i]) + (add ? static_cast<double>(y[i]) : 0));
    expected.push_back(activated(activation, sums.back()));
  }
  EXPECT_LT(difference(out, expected), tolerance<T>()) << size;
  if (keep_sum) {
    EXPECT_LT(difference(sum, sums), tolerance<T>()) << size;
  }
}

TEST(ActivationKernels, Forward) {
  on_every_isa_and_type([](auto zero) {
    for (const int64_t size : kSizes) {
      for (const Activation activation : kActivations) {
        check_forward<decltype(zero)>(activation, size, false, false);
        check_forward<decltype(zero)>(activation, size, true, false);
        check_forward<decltype(zero)>(activation, size, true, true);
      }
    }
  });
}

TEST(ActivationKernels, ForwardInPlace) {
  on_every_isa([] {
    for (const int64_t size : kSizes) {
      auto x = normals<float>(size, 1);
      std::vector<double> expected;
      for (const float value : x) expected.push_back(activated(Activation::gelu, static_cast<double>(value)));
      activate_loop(ActivateLoop<float>{Activation::gelu, x.data(), nullptr, nullptr, x.data(), size});
      EXPECT_LT(difference(x, expected), tolerance<float>()) << size;
    }
  });
}

TEST(ActivationKernels, Backward) {
  on_every_isa_and_type([](auto zero) {
    using T = decltype(zero);
    for (const int64_t size : kSizes) {
      const auto x = away_from_zero(normals<T>(size, 1, 2)), g = normals<T>(size, 2);
      for (const Activation activation : kActivations) {
        auto out = unwritten<T>(size);
        activate_backward_loop(ActivateBackwardLoop<T>{activation, x.data(), g.data(), out.data(), size});
        std::vector<double> expected;
        for (size_t i = 0; i < x.size(); ++i) {
          expected.push_back(static_cast<double>(g[i]) * slope(activation, static_cast<double>(x[i])));
        }
        EXPECT_LT(difference(out, expected), std::max(tolerance<T>(3), 1e-10)) << size;  // of the finite difference
      }
    }
  });
}

// Far from zero nothing overflows on the way, and NaN stays NaN.
TEST(ActivationKernels, LargeValuesAndNan) {
  on_every_isa_and_type([](auto zero) {
    using T = decltype(zero);
    const std::vector<T> x{T(-1e30), T(-1000), T(1000), T(1e30), std::numeric_limits<T>::quiet_NaN()};
    for (const Activation activation : kActivations) {
      if (activation == Activation::identity) continue;
      auto out = unwritten<T>(5);
      activate_loop(ActivateLoop<T>{activation, x.data(), nullptr, nullptr, out.data(), 5});
      const double below = activation == Activation::elu ? -1 : 0;
      EXPECT_NEAR(static_cast<double>(out[0]), below, 1e-6);
      EXPECT_NEAR(static_cast<double>(out[1]), below, 1e-6);
      EXPECT_EQ(out[2], T(1000));
      EXPECT_EQ(out[3], T(1e30));
      EXPECT_TRUE(std::isnan(out[4]));
    }
  });
}

}  // namespace
}  // namespace convssm::ops::testing
