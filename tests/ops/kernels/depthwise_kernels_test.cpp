// Depthwise convolution against a plain loop over all taps in float64: kernels within the frame, larger than it and flat.
#include "convssm/ops/depthwise_kernels.h"

#include "tests/ops/kernels/kernel_test.h"

namespace convssm::ops::testing {
namespace {

struct DepthwiseCase {
  int64_t H, W, kh, kw;
};

std::vector<double> naive_depthwise(const DepthwiseCase& s, int64_t C, const std::vector<float>& x,
                                    const std::vector<float>& w, const std::vector<float>& bias) {
  std::vector<double> out(static_cast<size_t>(s.H * s.W * C));
  for (int64_t i = 0; i < s.H * s.W * C; ++i) {
    const int64_t c = i % C, column = i / C % s.W, row = i / C / s.W;
    double sum = bias.empty() ? 0 : static_cast<double>(bias[c]);
    for (int64_t tap = 0; tap < s.kh * s.kw; ++tap) {
      const int64_t h = row + tap / s.kw - s.kh / 2, v = column + tap % s.kw - s.kw / 2;
      if (h < 0 || h >= s.H || v < 0 || v >= s.W) continue;
      sum += static_cast<double>(x[(h * s.W + v) * C + c]) * static_cast<double>(w[tap * C + c]);
    }
    out[i] = sum;
  }
  return out;
}

TEST(DepthwiseKernels, IsTheNaiveSumInParts) {
  on_every_isa([] {
    for (const int64_t C : {1, 3, 8, 17, 33, 70}) {
      for (const DepthwiseCase& s :
           {DepthwiseCase{1, 1, 1, 1}, {5, 6, 3, 3}, {4, 3, 7, 7}, {3, 5, 1, 9}, {5, 2, 9, 1}}) {
        const auto x = normals<float>(s.H * s.W * C, 1), w = normals<float>(s.kh * s.kw * C, 2),
                   bias = normals<float>(C, 3);
        for (const bool with_bias : {false, true}) {
          auto out = unwritten<float>(s.H * s.W * C);
          const int64_t cut = s.H / 2;
          const float* offset = with_bias ? bias.data() : nullptr;
          depthwise_rows({0, cut, s.H, s.W, C, s.kh, s.kw, x.data(), w.data(), offset, out.data()});
          depthwise_rows({cut, s.H, s.H, s.W, C, s.kh, s.kw, x.data(), w.data(), offset, out.data()});
          const auto expected = naive_depthwise(s, C, x, w, with_bias ? bias : std::vector<float>());
          EXPECT_LT(difference(out, expected), tolerance<float>(3)) << C << " " << s.kh << "x" << s.kw;
        }
      }
    }
  });
}

}  // namespace
}  // namespace convssm::ops::testing
