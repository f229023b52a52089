// Rounding to bytes and the ranges of channels, exactly.
#include "convssm/ops/quantize_kernels.h"

#include "tests/ops/kernels/kernel_test.h"

namespace convssm::ops::testing {
namespace {

constexpr int64_t kRows = 3;

TEST(QuantizeKernels, RoundsAndCutsToBytes) {
  on_every_isa([] {
    for (const int64_t C : kSizes) {
      const auto x = normals<float>(kRows * C, 1), factor = normals<float>(C, 2, 20, 80), offset = filled(C, 100.0f);
      std::vector<uint8_t> out(static_cast<size_t>(kRows * C), 77);
      quantize_rows({kRows, C, x.data(), factor.data(), offset.data(), out.data()});
      for (int64_t i = 0; i < kRows * C; ++i) {
        const double value = static_cast<double>(x[i]) * static_cast<double>(factor[i % C]) + 100;
        EXPECT_NEAR(out[i], std::clamp(value, 0.0, 255.0), 0.5001) << C << " " << i;
      }
    }
  });
}

TEST(QuantizeKernels, ExtremesAreCut) {
  on_every_isa([] {
    for (const int64_t C : kSizes) {
      for (const float extreme : {-1e30f, 1e30f}) {
        const auto x = filled(C, extreme), one = filled(C, 1.0f);
        std::vector<uint8_t> out(static_cast<size_t>(C), 77);
        quantize_rows({1, C, x.data(), one.data(), one.data(), out.data()});
        for (const uint8_t value : out) EXPECT_EQ(value, extreme < 0 ? 0 : 255);
      }
    }
  });
}

TEST(QuantizeKernels, RangesAreWidened) {
  on_every_isa([] {
    for (const int64_t C : kSizes) {
      const auto x = normals<float>(kRows * C, 1);
      auto low = filled(C, -0.5f), high = filled(C, 0.5f);
      widen_range({kRows, C, x.data(), low.data(), high.data()});
      for (int64_t c = 0; c < C; ++c) {
        float least = -0.5f, most = 0.5f;
        for (int64_t row = 0; row < kRows; ++row) {
          least = std::min(least, x[row * C + c]);
          most = std::max(most, x[row * C + c]);
        }
        EXPECT_EQ(low[c], least);
        EXPECT_EQ(high[c], most);
      }
    }
  });
}

}  // namespace
}  // namespace convssm::ops::testing
