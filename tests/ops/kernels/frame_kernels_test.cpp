// The loops that run a model frame by frame, against plain loops in float64.
#include "convssm/ops/frame_kernels.h"

#include "tests/ops/kernels/kernel_test.h"

namespace convssm::ops::testing {
namespace {

using Doubles = std::vector<double>;

TEST(FrameKernels, PoolInParts) {
  on_every_isa([] {
    for (const int64_t C : kSizes) {
      for (const auto& [H, W] : {std::pair<int64_t, int64_t>{1, 1}, {3, 5}}) {
        const auto x = normals<float>(4 * H * W * C, 1);
        auto out = unwritten<float>(H * W * C);
        const int64_t cut = H / 2;
        pool2_rows({0, cut, W, C, x.data(), out.data()});
        pool2_rows({cut, H, W, C, x.data(), out.data()});
        Doubles expected(out.size());
        for (int64_t i = 0; i < 2 * H; ++i) {
          for (int64_t j = 0; j < 2 * W; ++j) {
            for (int64_t c = 0; c < C; ++c) {
              expected[(i / 2 * W + j / 2) * C + c] += 0.25 * static_cast<double>(x[(i * 2 * W + j) * C + c]);
            }
          }
        }
        EXPECT_LT(difference(out, expected), tolerance<float>()) << C;
      }
    }
  });
}

TEST(FrameKernels, MeansOfARangeOfChannels) {
  on_every_isa([] {
    for (const int64_t C : kSizes) {
      for (const int64_t pixels : {1, 2, 31, 32, 33, 70}) {
        const auto x = normals<float>(pixels * C, 1, 1, 2);
        auto means = unwritten<float>(C);
        auto sums = unwritten<double>(C);
        channel_means({pixels, C, 0, C / 3, x.data(), sums.data(), means.data()});
        channel_means({pixels, C, C / 3, C, x.data(), sums.data(), means.data()});
        Doubles expected(C);
        for (int64_t i = 0; i < pixels * C; ++i) expected[i % C] += static_cast<double>(x[i]) / double(pixels);
        EXPECT_LT(difference(means, expected), tolerance<float>()) << C << " " << pixels;
      }
    }
  });
}

TEST(FrameKernels, ScaleRows) {
  on_every_isa([] {
    constexpr int64_t kRows = 3;
    for (const int64_t C : kSizes) {
      const auto factor = normals<float>(C, 2), offset = normals<float>(C, 3);
      for (const bool scaled : {false, true}) {
        for (const bool moved : {false, true}) {
          auto x = normals<float>(kRows * C, 1);
          Doubles expected = exact(x);
          for (int64_t i = 0; i < kRows * C; ++i) {
            if (scaled) expected[i] *= static_cast<double>(factor[i % C]);
            if (moved) expected[i] += static_cast<double>(offset[i % C]);
          }
          scale_rows({kRows, C, scaled ? factor.data() : nullptr, moved ? offset.data() : nullptr, x.data()});
          EXPECT_LT(difference(x, expected), tolerance<float>()) << C;
        }
      }
    }
  });
}

TEST(FrameKernels, GateAndTanh) {
  on_every_isa([] {
    for (const int64_t size : kSizes) {
      const auto x = normals<float>(size, 1, 3), z = normals<float>(size, 2, 5);
      auto gated = unwritten<float>(size), bent = gated;
      gate_loop(x.data(), z.data(), gated.data(), size);
      tanh_loop(x.data(), bent.data(), size);
      Doubles gates, bends;
      for (size_t i = 0; i < x.size(); ++i) {
        gates.push_back(static_cast<double>(x[i]) * sigmoid(static_cast<double>(z[i])));
        bends.push_back(std::tanh(static_cast<double>(x[i])));
      }
      EXPECT_LT(difference(gated, gates), tolerance<float>()) << size;
      EXPECT_LT(difference(bent, bends), tolerance<float>()) << size;
    }
  });
}

TEST(FrameKernels, TanhIsCutAndKeepsNan) {
  on_every_isa([] {
    std::vector<float> x = normals<float>(33, 1, 40), out = unwritten<float>(33);
    x[5] = 1e6f;
    x[6] = -1e6f;
    x[32] = NAN;
    tanh_loop(x.data(), out.data(), 33);
    for (size_t i = 0; i < 32; ++i) EXPECT_LE(std::abs(out[i]), 1);
    EXPECT_NEAR(out[5], 1, 1e-6);
    EXPECT_NEAR(out[6], -1, 1e-6);
    EXPECT_TRUE(std::isnan(out[32]));
  });
}

TEST(FrameKernels, Gru) {
  on_every_isa([] {
    constexpr int64_t R = 3;
    for (const int64_t P : kSizes) {
      const auto u = normals<float>(R * 3 * P, 1), zr = normals<float>(R * 2 * P, 2), n = normals<float>(R * P, 3);
      const auto before = normals<float>(R * P, 4);
      auto h = before, reset = unwritten<float>(R * P);
      gru_reset_rows({R, P, u.data(), zr.data(), nullptr, reset.data(), h.data()});
      gru_update_rows({R, P, u.data(), zr.data(), n.data(), nullptr, h.data()});
      Doubles resets, updates;
      for (int64_t i = 0; i < R * P; ++i) {
        const int64_t row = i / P, p = i % P;
        const auto from_u = [&](int64_t gate) { return static_cast<double>(u[row * 3 * P + gate * P + p]); };
        const auto from_h = [&](int64_t gate) { return static_cast<double>(zr[row * 2 * P + gate * P + p]); };
        const double z = sigmoid(from_u(0) + from_h(0)), r = sigmoid(from_u(1) + from_h(1));
        const double next = std::tanh(from_u(2) + static_cast<double>(n[i])), old = static_cast<double>(before[i]);
        resets.push_back(r * old);
        updates.push_back((1 - z) * old + z * next);
      }
      EXPECT_LT(difference(reset, resets), tolerance<float>()) << P;
      EXPECT_LT(difference(h, updates), tolerance<float>()) << P;
    }
  });
}

}  // namespace
}  // namespace convssm::ops::testing
