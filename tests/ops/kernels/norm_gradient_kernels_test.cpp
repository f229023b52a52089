// Group norm and layer norm, backward, against the chain rule written out in float64. With n values of a group,
// xhat = (x - mean) rstd and dz the gradient before the affine part:
//   dx = rstd (w dz - sum(w dz) / n - xhat sum(w dz xhat) / n)
#include "convssm/ops/norm_kernels.h"
#include "tests/ops/kernels/activations.h"

namespace convssm::ops::testing {
namespace {

using Doubles = std::vector<double>;

constexpr double kEps = 1e-5;

struct Gradients {
  Doubles x, weight, bias;
};

struct Statistics {
  Doubles mean, rstd;
};

Statistics statistics(const Doubles& x, int64_t C, int64_t groups) {
  const auto total = static_cast<int64_t>(x.size()), width = C / groups;
  const double count = static_cast<double>(total / groups);
  Statistics s{Doubles(groups), Doubles(groups)};
  for (int64_t i = 0; i < total; ++i) s.mean[i % C / width] += x[i] / count;
  for (int64_t i = 0; i < total; ++i) s.rstd[i % C / width] += std::pow(x[i] - s.mean[i % C / width], 2) / count;
  for (double& value : s.rstd) value = 1 / std::sqrt(value + kEps);
  return s;
}

Gradients naive(const Doubles& x, const Doubles& weight, const Doubles& bias, const Doubles& g, int64_t groups,
                Activation activation) {
  const auto C = static_cast<int64_t>(weight.size()), total = static_cast<int64_t>(x.size()), width = C / groups;
  const double n = static_cast<double>(total / groups);
  const Statistics s = statistics(x, C, groups);
  Gradients out{Doubles(x.size()), Doubles(C), Doubles(C)};
  Doubles dz(x.size()), xhat(x.size()), sums(groups), sums_x(groups);
  for (int64_t i = 0; i < total; ++i) {
    const int64_t c = i % C, group = c / width;
    xhat[i] = (x[i] - s.mean[group]) * s.rstd[group];
    dz[i] = g[i] * slope(activation, xhat[i] * weight[c] + bias[c]);
    out.weight[c] += dz[i] * xhat[i];
    out.bias[c] += dz[i];
    sums[group] += weight[c] * dz[i];
    sums_x[group] += weight[c] * dz[i] * xhat[i];
  }
  for (int64_t i = 0; i < total; ++i) {
    const int64_t c = i % C, group = c / width;
    out.x[i] = s.rstd[group] * (weight[c] * dz[i] - sums[group] / n - xhat[i] * sums_x[group] / n);
  }
  return out;
}

// Smooth activations: the slope here is a finite difference.
constexpr std::array kSmooth{Activation::identity, Activation::gelu, Activation::swish, Activation::quick_gelu,
                             Activation::gelu_erf};

TEST(NormGradientKernels, GroupNormOfAFrame) {
  on_every_isa_and_type([](auto zero) {
    using T = decltype(zero);
    for (const int64_t C : kSizes) {
      for (const int64_t groups : {int64_t{1}, int64_t{3}, C}) {
        const int64_t pixels = 37;
        if (C % groups != 0) continue;
        const auto x = normals<T>(pixels * C, 1, 2, 1), g = normals<T>(pixels * C, 2), w = normals<T>(C, 3),
                   b = normals<T>(C, 4);
        const Activation activation = kSmooth[static_cast<size_t>(C + groups) % kSmooth.size()];
        Statistics known = statistics(exact(x), C, groups);
        auto out = unwritten<T>(pixels * C), scratch = unwritten<T>(4 * C);
        auto grad_weight = filled(C, 0.0), grad_bias = filled(C, 0.0), sums = unwritten<double>(2 * C);
        GroupNormBackwardFrame<T> frame{};
        static_cast<GroupNormFrame<T>&>(frame) = {
            activation,        pixels,        C,        groups,     kEps,
            x.data(),          w.data(),      b.data(), out.data(), known.mean.data(),
            known.rstd.data(), scratch.data()};
        frame.g = g.data();
        frame.grad_weight = grad_weight.data();
        frame.grad_bias = grad_bias.data();
        frame.sums = sums.data();
        group_norm_backward_frame(frame);
        const Gradients expected = naive(exact(x), exact(w), exact(b), exact(g), groups, activation);
        const double allowed = std::max(tolerance<T>(10), 1e-10);  // of the finite difference
        EXPECT_LT(difference(out, expected.x), allowed) << C << " " << groups;
        EXPECT_LT(difference(grad_weight, expected.weight), allowed) << C << " " << groups;
        EXPECT_LT(difference(grad_bias, expected.bias), allowed) << C << " " << groups;
      }
    }
  });
}

// Sums of weights and biases are collected after every 64 rows.
TEST(NormGradientKernels, LayerNormOfRows) {
  on_every_isa_and_type([](auto zero) {
    using T = decltype(zero);
    for (const int64_t C : kSizes) {
      for (const int64_t rows : {1, 64, 66}) {
        if (C == 1) continue;  // x is its own mean: the result is rounding
        const auto x = normals<T>(rows * C, 1, 2, 1), g = normals<T>(rows * C, 2), w = normals<T>(C, 3);
        auto out = unwritten<T>(rows * C), scratch = filled(2 * C, T{0});
        auto grad_weight = filled(C, 0.0), grad_bias = filled(C, 0.0);
        layer_norm_backward_rows(LayerNormBackwardRows<T>{rows, C, kEps, x.data(), g.data(), w.data(), out.data(),
                                                          scratch.data(), grad_weight.data(), grad_bias.data()});
        Gradients expected{{}, Doubles(C), Doubles(C)};
        for (int64_t row = 0; row < rows; ++row) {
          const auto part = [&](const std::vector<T>& all) {
            return Doubles(all.begin() + row * C, all.begin() + (row + 1) * C);
          };
          const Gradients one = naive(part(x), exact(w), Doubles(C), part(g), 1, Activation::identity);
          expected.x.insert(expected.x.end(), one.x.begin(), one.x.end());
          for (int64_t c = 0; c < C; ++c) {
            expected.weight[c] += one.weight[c];
            expected.bias[c] += one.bias[c];
          }
        }
        EXPECT_LT(difference(out, expected.x), std::max(tolerance<T>(50), 1e-10)) << C << " " << rows;
        EXPECT_LT(difference(grad_weight, expected.weight), std::max(tolerance<T>(20), 1e-10)) << C << " " << rows;
        EXPECT_LT(difference(grad_bias, expected.bias), std::max(tolerance<T>(5), 1e-10)) << C << " " << rows;
        EXPECT_EQ(scratch, filled(2 * C, T{0})) << "left as it was found";
      }
    }
  });
}

}  // namespace
}  // namespace convssm::ops::testing
