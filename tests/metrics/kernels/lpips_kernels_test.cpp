// The kernels of LPIPS against plain loops in float64, on arrays of exactly their size.
#include "convssm/metrics/lpips_kernels.h"

#include "tests/ops/kernels/kernel_test.h"

namespace convssm::metrics {
namespace {

using namespace ops::testing;

TEST(LpipsKernels, DistanceOfNormalizedFeatures) {
  on_every_isa([] {
    for (const int64_t C : kSizes) {
      constexpr int64_t kPixels = 5;
      const auto x = normals<float>(kPixels * C, 1), y = normals<float>(kPixels * C, 2);
      auto weight = normals<float>(C, 3);
      for (float& w : weight) w = std::abs(w);
      double expected = 0;
      for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
        const auto length = [&](const std::vector<float>& values) {
          double squares = 0;
          for (int64_t c = 0; c < C; ++c) squares += std::pow(static_cast<double>(values[pixel * C + c]), 2);
          return std::sqrt(squares) + 1e-10;
        };
        for (int64_t c = 0; c < C; ++c) {
          const double a = static_cast<double>(x[pixel * C + c]) / length(x);
          const double b = static_cast<double>(y[pixel * C + c]) / length(y);
          expected += static_cast<double>(weight[c]) * (a - b) * (a - b);
        }
      }
      EXPECT_NEAR(lpips_sum({x.data(), y.data(), weight.data(), kPixels, C}), expected, 1e-5 * expected + 1e-9) << C;
    }
  });
}

TEST(LpipsKernels, MaxPoolCutsWindowsOff) {
  on_every_isa([] {
    for (const int64_t C : kSizes) {
      for (const auto& [H, W, kernel] : {std::array<int64_t, 3>{2, 2, 2}, {7, 9, 3}, {8, 6, 3}, {5, 1, 3}, {1, 1, 2}}) {
        const int64_t h = (H + 1) / 2, w = (W + 1) / 2;
        const auto x = normals<float>(H * W * C, 1);
        auto out = unwritten<float>(h * w * C);
        max_pool({x.data(), out.data(), H, W, C, h, w, kernel});
        std::vector<double> expected(out.size(), -1e30);
        for (int64_t at = 0; at < h * w * C; ++at) {
          const int64_t row = at / C / w * 2, column = at / C % w * 2, c = at % C;
          for (int64_t i = row; i < std::min(row + kernel, H); ++i) {
            for (int64_t j = column; j < std::min(column + kernel, W); ++j) {
              expected[at] = std::max(expected[at], static_cast<double>(x[(i * W + j) * C + c]));
            }
          }
        }
        EXPECT_EQ(difference(out, expected), 0) << C;
      }
    }
  });
}

TEST(LpipsKernels, ReluConcat) {
  on_every_isa([] {
    for (const int64_t C : kSizes) {
      constexpr int64_t kPixels = 3;
      const auto first = normals<float>(kPixels * C, 1), second = normals<float>(kPixels * C, 2);
      auto out = unwritten<float>(2 * kPixels * C);
      relu_concat({first.data(), second.data(), out.data(), kPixels, C});
      for (int64_t i = 0; i < kPixels * C; ++i) {
        const int64_t at = i / C * 2 * C + i % C;
        EXPECT_EQ(out[at], std::max(first[i], 0.0f));
        EXPECT_EQ(out[at + C], std::max(second[i], 0.0f));
      }
    }
  });
}

}  // namespace
}  // namespace convssm::metrics
