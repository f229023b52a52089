// The inner loops of Winograd's F(4x4,3x3): a 3x3 convolution of 4x4 outputs by 36 products instead of 144.
//   y = A^T [ sum over channels (G w G^T) . (B^T x B) ] A     with x a tile of 6x6 inputs, y of 4x4 outputs
// The points are 0, +-1/sqrt(2), +-sqrt(2) and infinity: in float32 their rounding errors are the smallest known for
// this size. Channels together in memory; raw pointers only; checked by the caller.
#pragma once

#include <cstdint>

#include "convssm/ops/activation_kind.h"

namespace convssm::ops {

constexpr int64_t kWinogradTile = 4;        // outputs per tile and axis
constexpr int64_t kWinogradPositions = 36;  // products per tile and pair of channels

// Frames cut into tiles, numbered row by row and frame by frame.
struct WinogradFrames {
  int64_t frames, height, width, channels;
  int64_t tile_rows() const { return (height + kWinogradTile - 1) / kWinogradTile; }
  int64_t tile_columns() const { return (width + kWinogradTile - 1) / kWinogradTile; }
  int64_t tiles() const { return frames * tile_rows() * tile_columns(); }
};

// Where the value of (position, tile, channel) of transformed tiles is: rows of channels (panel = channels), or panels
// of a few channels, each with all its tiles one after another.
struct WinogradTiles {
  float* data;
  int64_t position_stride, tile_stride, panel, panel_stride;
};

struct WinogradEpilogue {  // y = activation(conv + bias + add)
  const float* bias = nullptr;
  const float* add = nullptr;  // frames of y's shape
  Activation activation = Activation::identity;
};

// Where the weight of output channel o, input channel i and tap t = 3 row + column lies.
struct WinogradWeights {
  const float* data;
  int64_t out_stride, in_stride, tap_stride;
  bool turned = false;  // tap t is found at 8 - t: with the strides of out and in exchanged, the weights for the
                        // gradient of the input
};

// Channels that the kernels take at once: both channel counts must be multiples of it.
int64_t winograd_lanes();
// Output channels in a panel of packed weights and of transformed gradients.
int64_t winograd_panel();
// Output channels with those that fill the last panel.
inline int64_t winograd_padded(int64_t channels) {
  return (channels + winograd_panel() - 1) / winograd_panel() * winograd_panel();
}

// Input channels first..end of one panel of output channels, as [9][end - first][panel width], zero beyond `out`.
void winograd_gather(const WinogradWeights& weights, int64_t first, int64_t end, int64_t out, int64_t panel, float* to);

// Weights of one panel of output channels, [9][in][panel width], to packed [36][in][panel width], positions `stride`
// apart.
void winograd_pack_panel(const float* taps, int64_t in, float* packed, int64_t stride);

// Input tiles first..end to B^T x B; zeros outside of the frame.
void winograd_input(const WinogradFrames& frames, const float* x, int64_t first, int64_t end, const WinogradTiles& to);

// Products of one position: m [tiles][out padded to panels] = v [tiles][in] * packed [panels][in][panel width].
void winograd_products(int64_t tiles, int64_t in, int64_t panels, const float* v, const float* packed, float* m);

// A^T m A of the tiles first..end, with the epilogue, to the frames y. m is in rows.
void winograd_output(const WinogradFrames& frames, const WinogradTiles& m, int64_t first, int64_t end,
                     const WinogradEpilogue& epilogue, float* y);

// A g A^T, the transposed of winograd_output, of the gradients g of y.
void winograd_output_gradient(const WinogradFrames& frames, const float* g, int64_t first, int64_t end,
                              const WinogradTiles& to);

// Products of one position over tiles: u [in][padded out] = v^T g, or += if `add`, with v and g in panels (of lanes and
// panel channels).
void winograd_gradient_products(int64_t tiles, int64_t in, int64_t panels, const float* v, const float* g, float* u,
                                bool add);

// The gradient of the weights [out][in][9] from the 36 sums [in][padded out]; input channels first..end of `in`.
void winograd_unpack(const float* sums, int64_t position_stride, int64_t first, int64_t end, int64_t in, int64_t out,
                     float* weight);

}  // namespace convssm::ops
