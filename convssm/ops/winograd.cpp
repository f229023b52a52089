// The order of the work. Many tiles: each thread takes chunks of tiles through input transform, 36 products and output
// transform, so that a chunk stays in its caches and no thread waits for another. Few tiles (one frame), or weights that
// no cache keeps from one chunk to the next: all threads transform a share, then split the 36 positions, so that each
// reads only its part of the packed weights.
#include "convssm/ops/winograd.h"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "convssm/ops/scratch.h"

namespace convssm::ops {
namespace {

constexpr int64_t kPositions = kWinogradPositions;
// Tiles that a thread takes through all steps: their transforms stay in its part of the last cache.
constexpr int64_t kForwardBytes = 7 << 18;
// Tiles that all threads transform together: at least what stays in the last cache, and with more weights more, since
// these (or their sums) are read once for each such piece.
constexpr int64_t kLeastShared = 9 << 20, kMostShared = 64 << 20;
// Packed weights up to this size stay in the last cache and can be read again for the next few tiles.
constexpr int64_t kKeptWeights = 12 << 20;
constexpr int64_t kPackedAtOnce = 16;
// With fewer tiles per thread the threads share the tiles and split the positions, so that each reads its part of the
// packed weights only.
constexpr int64_t kFewTiles = 48;

int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

int64_t packed_bytes(int64_t in, int64_t out) {
  return static_cast<int64_t>(winograd_packed_size(in, out) * sizeof(float));
}

// Positions lie an odd number of cache lines apart, or all of a tile's 36 would compete for the same lines.
int64_t position_stride(int64_t values) { return round_up(values, 32) + 16; }

int64_t packed_stride(int64_t in, int64_t out) { return position_stride(in * winograd_padded(out)); }

WinogradTiles in_rows(float* data, int64_t tiles, int64_t channels) {
  return {data, position_stride(tiles * channels), channels, channels, 0};
}

WinogradTiles in_panels(float* data, int64_t tiles, int64_t channels, int64_t panel) {
  return {data, position_stride(tiles * round_up(channels, panel)), panel, panel, tiles * panel};
}

// The same tiles from tile `first` on.
WinogradTiles from_tile(WinogradTiles tiles, int64_t first) {
  tiles.data += first * tiles.tile_stride;
  return tiles;
}

// Tiles that are transformed together: about `bytes`, in chunks of equal size, as many for each of `threads`.
int64_t tiles_at_once(int64_t bytes, int64_t channels, int64_t tiles, int64_t threads) {
  const int64_t fitting = std::max<int64_t>(bytes / (kPositions * static_cast<int64_t>(sizeof(float)) * channels), 6);
  const int64_t chunks = round_up((tiles + fitting - 1) / fitting, threads);
  return std::max<int64_t>((tiles + chunks - 1) / chunks, 1);
}

// The same for tiles that all threads share.
int64_t shared_at_once(int64_t in, int64_t out, int64_t tiles) {
  return tiles_at_once(std::clamp(packed_bytes(in, out), kLeastShared, kMostShared), in + winograd_padded(out), tiles,
                       1);
}

// Tiles of the calling thread when `tiles` are divided among all of the parallel region.
std::pair<int64_t, int64_t> share(int64_t tiles) {
  const int64_t count = omp_get_num_threads(), i = omp_get_thread_num();
  return {tiles * i / count, tiles * (i + 1) / count};
}

struct Forward {
  WinogradFrames from, to;
  const float* x;
  const float* packed;
  const WinogradEpilogue& epilogue;
  float* y;

  int64_t panels() const { return winograd_padded(to.channels) / winograd_panel(); }

  void products(int64_t position, int64_t tiles, const WinogradTiles& v, const WinogradTiles& m) const {
    const int64_t stride = packed_stride(from.channels, to.channels);
    winograd_products(tiles, from.channels, panels(), v.data + position * v.position_stride, packed + position * stride,
                      m.data + position * m.position_stride);
  }

  // Every thread has tiles of its own.
  void many_tiles() const {
    const int64_t tiles = from.tiles(), row = winograd_padded(to.channels);
    const int64_t chunk = tiles_at_once(kForwardBytes, from.channels + row, tiles, omp_get_max_threads());
    const int64_t chunks = (tiles + chunk - 1) / chunk;
    const int64_t v_size = kPositions * in_rows(nullptr, chunk, from.channels).position_stride;
    const int64_t size = v_size + kPositions * in_rows(nullptr, chunk, row).position_stride;
    float* memory = scratch_floats(size * omp_get_max_threads());
#pragma omp parallel
    {
      float* own = memory + omp_get_thread_num() * size;
      const WinogradTiles v = in_rows(own, chunk, from.channels), m = in_rows(own + v_size, chunk, row);
#pragma omp for schedule(dynamic)
      for (int64_t i = 0; i < chunks; ++i) {
        const int64_t first = i * chunk, end = std::min(tiles, first + chunk);
        winograd_input(from, x, first, end, v);
        for (int64_t p = 0; p < kPositions; ++p) products(p, end - first, v, m);
        winograd_output(to, m, first, end, epilogue, y);
      }
    }
  }

  // The threads share the tiles for the transforms and the positions for the products.
  void by_position() const {
    const int64_t tiles = from.tiles(), row = winograd_padded(to.channels);
    const int64_t chunk = shared_at_once(from.channels, to.channels, tiles);
    const int64_t v_size = kPositions * in_rows(nullptr, chunk, from.channels).position_stride;
    float* memory = scratch_floats(v_size + kPositions * in_rows(nullptr, chunk, row).position_stride);
#pragma omp parallel
    for (int64_t begin = 0; begin < tiles; begin += chunk) {
      const int64_t count = std::min(chunk, tiles - begin);
      const WinogradTiles v = in_rows(memory, count, from.channels), m = in_rows(memory + v_size, count, row);
      const auto [first, end] = share(count);
      winograd_input(from, x, begin + first, begin + end, from_tile(v, first));
#pragma omp barrier
#pragma omp for schedule(dynamic)
      for (int64_t p = 0; p < kPositions; ++p) products(p, count, v, m);
      winograd_output(to, from_tile(m, first), begin + first, begin + end, epilogue, y);
#pragma omp barrier
    }
  }
};

}  // namespace

bool winograd_takes(int64_t in, int64_t out) {
  const int64_t lanes = winograd_lanes();
  return lanes >= 4 && in > 0 && out > 0 && in % lanes == 0 && out % lanes == 0;
}

size_t winograd_packed_size(int64_t in, int64_t out) {
  return static_cast<size_t>(kPositions * packed_stride(in, out));
}

// A few input channels at a time, whose taps stay in the first-level cache.
void winograd_pack(const WinogradWeights& weights, int64_t in, int64_t out, float* packed) {
  const int64_t width = winograd_panel(), panels = winograd_padded(out) / width, size = 9 * kPackedAtOnce * width;
  float* memory = scratch_floats(size * omp_get_max_threads());
#pragma omp parallel for schedule(static)
  for (int64_t panel = 0; panel < panels; ++panel) {
    float* taps = memory + size * omp_get_thread_num();
    for (int64_t first = 0; first < in; first += kPackedAtOnce) {
      const int64_t end = std::min(in, first + kPackedAtOnce);
      winograd_gather(weights, first, end, out, panel, taps);
      winograd_pack_panel(taps, end - first, packed + (panel * in + first) * width, packed_stride(in, out));
    }
  }
}

void winograd_forward(const WinogradShape& s, const float* x, const float* packed, const WinogradEpilogue& epilogue,
                      float* y) {
  const Forward run{{s.frames, s.height, s.width, s.in}, {s.frames, s.height, s.width, s.out}, x, packed, epilogue, y};
  const bool few = run.from.tiles() < kFewTiles * omp_get_max_threads();
  few || packed_bytes(s.in, s.out) > kKeptWeights ? run.by_position() : run.many_tiles();
}

void winograd_weight_gradient(const WinogradShape& s, const float* x, const float* g, float* weight) {
  const WinogradFrames from{s.frames, s.height, s.width, s.in}, to{s.frames, s.height, s.width, s.out};
  const int64_t tiles = from.tiles(), row = winograd_padded(s.out), lanes = winograd_lanes(), panel = winograd_panel();
  const int64_t chunk = shared_at_once(s.in, s.out, tiles), sum_stride = position_stride(s.in * row);
  const int64_t v_size = kPositions * in_panels(nullptr, chunk, s.in, lanes).position_stride;
  const int64_t g_size = kPositions * in_panels(nullptr, chunk, s.out, panel).position_stride;
  float* memory = scratch_floats(v_size + g_size + kPositions * sum_stride);
  float* sums = memory + v_size + g_size;
#pragma omp parallel
  {
    for (int64_t begin = 0; begin < tiles; begin += chunk) {
      const int64_t count = std::min(chunk, tiles - begin);
      const auto [first, end] = share(count);
      const WinogradTiles v = in_panels(memory, count, s.in, lanes),
                          d = in_panels(memory + v_size, count, s.out, panel);
      winograd_input(from, x, begin + first, begin + end, from_tile(v, first));
      winograd_output_gradient(to, g, begin + first, begin + end, from_tile(d, first));
#pragma omp barrier
#pragma omp for schedule(dynamic)
      for (int64_t p = 0; p < kPositions; ++p) {
        winograd_gradient_products(count, s.in, row / panel, v.data + p * v.position_stride,
                                   d.data + p * d.position_stride, sums + p * sum_stride, begin > 0);
      }
    }
    const auto [first, end] = share(s.in);
    winograd_unpack(sums, sum_stride, first, end, s.in, s.out, weight);
  }
}

}  // namespace convssm::ops
