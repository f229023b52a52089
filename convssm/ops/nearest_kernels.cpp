// Compiled once per instruction set by Highway. 16 codes at a time are turned into a tile that stays in the first cache, and all
// rows pass by it, four at once. Every lane keeps the best of its own codes; the lanes of a row are compared at the end.
#include "convssm/ops/nearest_kernels.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/nearest_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kTile = 16, kRows = 4;

struct Tile {
  const float* turned;  // [features,kTile]
  const float* bias;    // [kTile]
  int64_t first;        // number of its first code
};

// Rows x[0..3] against a tile; best [4][kTile] scores and the numbers of their codes.
void Compare(const float* const* x, int64_t features, const Tile& tile, float* best, int32_t* at) {
  const hn::CappedTag<float, kTile> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < kTile; j += N) {
    const auto bias = hn::LoadU(d, tile.bias + j);
    auto s0 = bias, s1 = bias, s2 = bias, s3 = bias;
    for (int64_t c = 0; c < features; ++c) {
      const auto codes = hn::LoadU(d, tile.turned + c * kTile + j);
      s0 = hn::MulAdd(hn::Set(d, x[0][c]), codes, s0);
      s1 = hn::MulAdd(hn::Set(d, x[1][c]), codes, s1);
      s2 = hn::MulAdd(hn::Set(d, x[2][c]), codes, s2);
      s3 = hn::MulAdd(hn::Set(d, x[3][c]), codes, s3);
    }
    const auto number = hn::Iota(di, static_cast<int32_t>(tile.first + j));
    const auto keep = [&](int64_t r, auto score) HWY_ATTR {
      float* value = best + r * kTile + j;
      int32_t* place = at + r * kTile + j;
      const auto better = hn::Gt(score, hn::LoadU(d, value));
      hn::StoreU(hn::IfThenElse(better, score, hn::LoadU(d, value)), d, value);
      hn::StoreU(hn::IfThenElse(hn::RebindMask(di, better), number, hn::LoadU(di, place)), di, place);
    };
    keep(0, s0), keep(1, s1), keep(2, s2), keep(3, s3);
  }
}

void Nearest(const NearestRows& p) {
  const int64_t padded = (p.rows + kRows - 1) / kRows * kRows;
  float *turned = p.scratch, *bias = turned + p.features * kTile, *best = bias + kTile;
  auto* at = reinterpret_cast<int32_t*>(best + padded * kTile);
  constexpr float least = -std::numeric_limits<float>::infinity();
  std::fill(best, best + padded * kTile, least);
  std::fill(at, at + padded * kTile, 0);
  for (int64_t first = 0; first < p.codes; first += kTile) {
    const int64_t count = std::min(kTile, p.codes - first);
    std::fill(turned, bias, 0.0f);
    std::fill(bias, bias + kTile, least);
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t c = 0; c < p.features; ++c) turned[c * kTile + j] = p.table[(first + j) * p.features + c];
      bias[j] = p.bias[first + j];
    }
    for (int64_t i = 0; i < p.rows; i += kRows) {
      const float* x[kRows];
      for (int64_t r = 0; r < kRows; ++r) x[r] = p.x + std::min(i + r, p.rows - 1) * p.features;
      Compare(x, p.features, {turned, bias, first}, best + i * kTile, at + i * kTile);
    }
  }
  for (int64_t i = 0; i < p.rows; ++i) {
    const float* value = best + i * kTile;
    const int32_t* place = at + i * kTile;
    int64_t lane = 0;
    for (int64_t j = 1; j < kTile; ++j) {
      if (value[j] > value[lane] || (value[j] == value[lane] && place[j] < place[lane])) lane = j;
    }
    p.chosen[i] = place[lane];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(Nearest);

int64_t nearest_scratch(int64_t rows, int64_t features) { return 16 * (features + 1 + 2 * (rows + 3)); }

void nearest_rows(const NearestRows& problem) { HWY_DYNAMIC_DISPATCH(Nearest)(problem); }

}  // namespace convssm::ops
#endif
