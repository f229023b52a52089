// The loops that run a model frame by frame, on every instruction set, against plain tensor operations in float64.
#include "convssm/ops/frame_kernels.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/ops/group_norm_range_kernels.h"
#include "convssm/ops/isa.h"
#include "convssm/ops/norm.h"
#include "tests/support.h"

namespace convssm::ops::testing {
namespace {

using convssm::testing::distance;
using convssm::testing::randn;

at::Tensor floats(at::IntArrayRef shape, uint64_t seed, double scale = 1) {
  return (randn(shape, seed) * scale).to(at::kFloat);
}
at::Tensor exact(const at::Tensor& x) { return x.to(at::kDouble); }
float* at_(const at::Tensor& x) { return x.data_ptr<float>(); }

void on_every_isa(const std::function<void()>& test) {
  for (const std::string& isa : isa_names()) {
    SCOPED_TRACE(isa);
    force_isa(isa);
    test();
  }
  force_isa("");
}

// The frame [pixels,C] normalized range by range.
at::Tensor in_ranges(const at::Tensor& x, int64_t groups, int64_t ranges, const at::Tensor& weight,
                     const at::Tensor& bias, Activation activation) {
  const int64_t C = x.size(1), width = C / groups;
  const at::Tensor out = at::full_like(x, NAN), sums = at::empty({C}, at::kDouble);
  const at::Tensor means = at::empty({C}), scales = at::empty({C});
  for (int64_t i = 0; i < ranges; ++i) {
    const int64_t c0 = groups * i / ranges * width, c1 = groups * (i + 1) / ranges * width;
    group_norm_range({activation, x.size(0), C, width, c0, c1, kNormEps, at_(x), at_(weight), at_(bias), at_(out),
                      sums.data_ptr<double>(), at_(means), at_(scales)});
  }
  return out;
}

TEST(FrameKernels, GroupNormInRanges) {
  on_every_isa([] {
    for (const auto& [C, groups] : {std::pair{40, 4}, {40, 40}, {12, 3}, {7, 1}, {256, 32}}) {
      for (const int64_t pixels : {1, 35, 256}) {
        const at::Tensor x = floats({pixels, C}, 1, 2) + 3, w = floats({C}, 2), b = floats({C}, 3);
        const at::Tensor frame = exact(x).t().view({1, C, pixels, 1});
        for (const auto activation : {Activation::identity, Activation::elu, Activation::gelu}) {
          const at::Tensor expected =
              group_norm_plain(frame, groups, exact(w), exact(b), activation).view({C, pixels}).t();
          for (const int64_t ranges : {1, 2}) {
            if (ranges > groups) continue;
            EXPECT_LT(distance(exact(in_ranges(x, groups, ranges, w, b, activation)), expected), 1e-5)
                << C << " " << groups << " " << pixels;
          }
        }
      }
    }
  });
}

TEST(FrameKernels, Pool) {
  on_every_isa([] {
    for (const int64_t C : {1, 3, 19, 64}) {
      const at::Tensor x = floats({6, 10, C}, 1), out = at::full({3, 5, C}, NAN);
      pool2_rows({0, 1, 5, C, at_(x), at_(out)});
      pool2_rows({1, 3, 5, C, at_(x), at_(out)});
      const at::Tensor expected = at::avg_pool2d(exact(x).permute({2, 0, 1}).unsqueeze(0), 2, 2)[0].permute({1, 2, 0});
      EXPECT_LT(distance(exact(out), expected), 1e-6) << C;
    }
  });
}

TEST(FrameKernels, MeansAndScales) {
  on_every_isa([] {
    const at::Tensor x = floats({77, 21}, 1) + 2, sums = at::empty({21}, at::kDouble), means = at::full({21}, NAN);
    channel_means({77, 21, 0, 8, at_(x), sums.data_ptr<double>(), at_(means)});
    channel_means({77, 21, 8, 21, at_(x), sums.data_ptr<double>(), at_(means)});
    EXPECT_LT(distance(exact(means), exact(x).mean(0)), 1e-6);
    const at::Tensor f = floats({21}, 2), o = floats({21}, 3);
    const at::Tensor y = x.clone(), scaled = x.clone(), moved = x.clone();
    scale_rows({77, 21, at_(f), at_(o), at_(y)});
    scale_rows({77, 21, at_(f), nullptr, at_(scaled)});
    scale_rows({77, 21, nullptr, at_(o), at_(moved)});
    EXPECT_LT(distance(exact(y), exact(x) * exact(f) + exact(o)), 2e-6);
    EXPECT_LT(distance(exact(scaled), exact(x) * exact(f)), 2e-6);
    EXPECT_LT(distance(exact(moved), exact(x) + exact(o)), 2e-6);
  });
}

TEST(FrameKernels, GatesAndTanh) {
  on_every_isa([] {
    const at::Tensor x = floats({203}, 1, 3), z = floats({203}, 2, 5), out = at::empty({203}), t = at::empty({203});
    gate_loop(at_(x), at_(z), at_(out), 203);
    EXPECT_LT(distance(exact(out), exact(x) * at::sigmoid(exact(z))), 2e-6);
    x[5] = 1e6;
    x[6] = -1e6;
    tanh_loop(at_(x), at_(t), 203);
    EXPECT_LT(distance(exact(t), at::tanh(exact(x))), 1e-6);
    EXPECT_LE(t.abs().max().item<float>(), 1);
    x[7] = NAN;
    tanh_loop(at_(x), at_(t), 203);
    EXPECT_EQ(t.isnan().sum().item<int64_t>(), 1);
  });
}

TEST(FrameKernels, Gru) {
  on_every_isa([] {
    constexpr int64_t R = 5, P = 19;
    const at::Tensor u = floats({R, 3 * P}, 1), zr = floats({R, 2 * P}, 2), n = floats({R, P}, 3);
    const at::Tensor h0 = floats({R, P}, 4), h = h0.clone(), reset = at::full({R, P}, NAN);
    const GruRows rows{R, P, at_(u), at_(zr), at_(n), at_(reset), at_(h)};
    gru_reset_rows(rows);
    gru_update_rows(rows);
    const auto of_u = exact(u).chunk(3, 1), of_h = exact(zr).chunk(2, 1);
    const at::Tensor z = at::sigmoid(of_u[0] + of_h[0]), r = at::sigmoid(of_u[1] + of_h[1]);
    EXPECT_LT(distance(exact(reset), r * exact(h0)), 2e-6);
    EXPECT_LT(distance(exact(h), (1 - z) * exact(h0) + z * at::tanh(of_u[2] + exact(n))), 2e-6);
  });
}

}  // namespace
}  // namespace convssm::ops::testing
