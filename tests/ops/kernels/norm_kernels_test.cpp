// Group norm and layer norm, forward, against plain loops in float64.
#include "convssm/ops/norm_kernels.h"

#include "convssm/ops/group_norm_range_kernels.h"
#include "tests/ops/kernels/activations.h"

namespace convssm::ops::testing {
namespace {

using Doubles = std::vector<double>;

constexpr double kEps = 1e-5;

struct Groups {
  int64_t channels, groups;
};

// Every size as one group, as groups of one channel, and cut where it can be cut.
std::vector<Groups> cuts() {
  std::vector<Groups> all;
  for (const int64_t C : kSizes) {
    for (const int64_t groups : {int64_t{1}, int64_t{3}, C}) {
      if (C % groups == 0 && (groups != 1 || C > 1)) all.push_back({C, groups});
    }
  }
  return all;
}

struct Normalized {
  Doubles out, mean, rstd;
};

// x [pixels,C] in groups of neighbouring channels.
Normalized naive(const Doubles& x, const Doubles& weight, const Doubles& bias, int64_t groups, Activation activation) {
  const auto C = static_cast<int64_t>(weight.size()), width = C / groups, total = static_cast<int64_t>(x.size());
  const double count = static_cast<double>(total / groups);
  Normalized n{Doubles(x.size()), Doubles(groups), Doubles(groups)};
  Doubles squares(groups);
  for (int64_t i = 0; i < total; ++i) n.mean[i % C / width] += x[i] / count;
  for (int64_t i = 0; i < total; ++i) squares[i % C / width] += std::pow(x[i] - n.mean[i % C / width], 2) / count;
  for (int64_t g = 0; g < groups; ++g) n.rstd[g] = 1 / std::sqrt(squares[g] + kEps);
  for (int64_t i = 0; i < total; ++i) {
    const int64_t c = i % C, g = c / width;
    n.out[i] = activated(activation, (x[i] - n.mean[g]) * n.rstd[g] * weight[c] + bias[c]);
  }
  return n;
}

TEST(NormKernels, GroupNormOfAFrame) {
  on_every_isa_and_type([](auto zero) {
    using T = decltype(zero);
    for (const auto& [C, groups] : cuts()) {
      for (const int64_t pixels : {2, 5, 33}) {
        const auto x = normals<T>(pixels * C, 1, 2, 3), w = normals<T>(C, 2), b = normals<T>(C, 3);
        const Activation activation = kActivations[static_cast<size_t>(C + pixels) % kActivations.size()];
        auto out = unwritten<T>(pixels * C), scratch = unwritten<T>(4 * C);
        auto mean = unwritten<double>(groups), rstd = mean;
        group_norm_frame(GroupNormFrame<T>{activation, pixels, C, groups, kEps, x.data(), w.data(), b.data(),
                                           out.data(), mean.data(), rstd.data(), scratch.data()});
        const Normalized expected = naive(exact(x), exact(w), exact(b), groups, activation);
        EXPECT_LT(difference(out, expected.out), tolerance<T>(20)) << C << " " << groups << " " << pixels;
        EXPECT_LT(difference(mean, expected.mean), tolerance<T>(20)) << C << " " << groups << " " << pixels;
        EXPECT_LT(difference(rstd, expected.rstd), tolerance<T>(50)) << C << " " << groups << " " << pixels;
      }
    }
  });
}

TEST(NormKernels, GroupNormInRangesOfGroups) {
  on_every_isa([] {
    for (const auto& [C, groups] : cuts()) {
      const int64_t pixels = 35, width = C / groups, cut = groups / 2 * width;
      const auto x = normals<float>(pixels * C, 1, 2, 3), w = normals<float>(C, 2), b = normals<float>(C, 3);
      auto out = unwritten<float>(pixels * C), means = unwritten<float>(C), scales = means;
      auto sums = unwritten<double>(C);
      for (const auto& [c0, c1] : {std::pair{int64_t{0}, cut}, {cut, C}}) {
        group_norm_range({Activation::gelu, pixels, C, width, c0, c1, kEps, x.data(), w.data(), b.data(), out.data(),
                          sums.data(), means.data(), scales.data()});
      }
      const Normalized expected = naive(exact(x), exact(w), exact(b), groups, Activation::gelu);
      EXPECT_LT(difference(out, expected.out), tolerance<float>(10)) << C << " " << groups;
    }
  });
}

// A row is one group of all its channels.
Doubles naive_rows(const Doubles& x, const Doubles& weight, const Doubles& bias) {
  Doubles out;
  for (size_t at = 0; at < x.size(); at += weight.size()) {
    const Doubles row(x.begin() + static_cast<int64_t>(at), x.begin() + static_cast<int64_t>(at + weight.size()));
    const Doubles done = naive(row, weight, bias, 1, Activation::identity).out;
    out.insert(out.end(), done.begin(), done.end());
  }
  return out;
}

TEST(NormKernels, LayerNormOfRows) {
  on_every_isa_and_type([](auto zero) {
    using T = decltype(zero);
    constexpr int64_t kRows = 3;
    for (const int64_t C : kSizes) {
      const auto x = normals<T>(kRows * C, 1, 2, 1), y = normals<T>(kRows * C, 2), w = normals<T>(C, 3),
                 b = normals<T>(C, 4);
      Doubles sums = exact(x);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(y[i]);
      for (const bool add : {false, true}) {
        for (const bool keep : {false, true}) {
          if (keep && !add) continue;
          auto out = unwritten<T>(kRows * C), sum = out;
          layer_norm_rows(LayerNormRows<T>{kRows, C, kEps, x.data(), add ? y.data() : nullptr, w.data(), b.data(),
                                           keep ? sum.data() : nullptr, out.data()});
          EXPECT_LT(difference(out, naive_rows(add ? sums : exact(x), exact(w), exact(b))), tolerance<T>(50)) << C;
          if (keep) {
            EXPECT_LT(difference(sum, sums), tolerance<T>()) << C;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace convssm::ops::testing
