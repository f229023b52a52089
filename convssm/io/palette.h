// At most 256 colours for an RGB frame: its own colours if there are so few, else the means of 256 boxes that the
// colours are divided into, each time the box with the largest squared error, at its mean. Inside io/ only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace convssm::io {

using Colour = std::array<uint8_t, 3>;

struct IndexedFrame {
  std::vector<Colour> palette;
  std::vector<uint8_t> pixels;  // into the palette
};

// `rgb` holds 3 bytes per pixel.
void index_colours(std::span<const uint8_t> rgb, IndexedFrame& out);

}  // namespace convssm::io
