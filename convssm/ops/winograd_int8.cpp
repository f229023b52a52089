// Inputs and weights are scaled per channel: the step of an input channel goes into the weights before their transform,
// so the sums over channels need one scale only. Threads split the tiles for the transforms and the positions for the
// products: a frame has few tiles, and each thread then reads only a part of the weights.
#include "convssm/ops/winograd_int8.h"

#include <omp.h>

#include <algorithm>

#include "convssm/ops/scratch.h"
#include "convssm/ops/winograd_int8_kernels.h"

namespace convssm::ops {
namespace {

constexpr int64_t kPositions = kWinogradPositions;
constexpr int64_t kMostInputs = 1 << 14;  // so that sums of 32 bits leave 7 bits or more to the weights
constexpr int64_t kTilesAtOnce = 96;

int64_t position_stride(int64_t values) { return (values + 63) / 64 * 64 + 32; }  // see winograd.cpp

}  // namespace

bool winograd_int8_takes(int64_t in, int64_t out) { return winograd_takes(in, out) && in <= kMostInputs; }

WinogradInt8Weights winograd_int8_pack(const WinogradWeights& weights, int64_t in, int64_t out, const float* limits) {
  const int64_t width = winograd_panel(), row = winograd_padded(out);
  WinogradInt8Weights to{in, out, HugePages<int16_t>(static_cast<size_t>(kPositions * in * row)), {}, {}};
  to.scales.resize(static_cast<size_t>(kPositions * row));
  std::vector<float> steps;
  for (int64_t i = 0; i < in; ++i) {
    steps.push_back((limits[i] > 0 ? limits[i] : 1) / kInt8Levels);
    to.inverse_steps.push_back(1 / steps.back());
  }
  const int64_t size = 9 * in * width;
  float* memory = scratch_floats(size * omp_get_max_threads());
#pragma omp parallel for schedule(static)
  for (int64_t panel = 0; panel < row / width; ++panel) {
    float* taps = memory + size * omp_get_thread_num();
    winograd_gather(weights, 0, in, out, panel, taps);
    for (int64_t i = 0; i < size; ++i) taps[i] *= steps[static_cast<size_t>(i / width % in)];
    winograd_int8_pack_panel(taps, in, to.weights.data() + panel * in * width, in * row,
                             to.scales.data() + panel * width, row);
  }
  return to;
}

// The threads share the tiles and split the positions: a frame at a time is what this is for.
void winograd_int8_forward(const WinogradShape& s, const float* x, const WinogradInt8Weights& packed,
                           const WinogradEpilogue& epilogue, float* y) {
  const WinogradFrames from{s.frames, s.height, s.width, s.in}, to{s.frames, s.height, s.width, s.out};
  const int64_t tiles = from.tiles(), row = winograd_padded(s.out), chunk = std::min(tiles, kTilesAtOnce);
  const int64_t v_stride = position_stride(chunk * s.in), m_stride = position_stride(chunk * row);
  float* memory = scratch_floats(kPositions * (m_stride + v_stride / 2));
  auto* v = reinterpret_cast<int16_t*>(memory + kPositions * m_stride);
  const WinogradTiles m{memory, m_stride, row, row, 0};
#pragma omp parallel
  {
    const int64_t threads = omp_get_num_threads(), own = omp_get_thread_num();
    for (int64_t begin = 0; begin < tiles; begin += chunk) {
      const int64_t count = std::min(chunk, tiles - begin);
      const int64_t first = count * own / threads, end = count * (own + 1) / threads;
      winograd_int8_input(from, x, begin + first, begin + end, packed.inverse_steps.data(), v_stride, v + first * s.in);
#pragma omp barrier
#pragma omp for schedule(static)
      for (int64_t p = 0; p < kPositions; ++p) {
        winograd_int8_products(count, s.in, row / winograd_panel(), v + p * v_stride,
                               packed.weights.data() + p * s.in * row, packed.scales.data() + p * row,
                               m.data + p * m_stride);
      }
      WinogradTiles own_tiles = m;
      own_tiles.data += first * row;
      winograd_int8_output(to, own_tiles, begin + first, begin + end, epilogue, y);
#pragma omp barrier
    }
  }
}

}  // namespace convssm::ops
