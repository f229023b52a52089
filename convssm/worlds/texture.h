// Square textures made by formula: bricks, planks, tiles, stones and others in random colours, each also at half the size,
// a quarter, ... (mip levels), so that far walls do not flicker.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "convssm/base/random.h"

namespace convssm::worlds {

struct Color {
  uint8_t r = 0, g = 0, b = 0;
};

inline constexpr int texture_levels = 7;  // 64, 32, ... 1 texels a side

class Texture {
 public:
  static constexpr int size = 1 << (texture_levels - 1);

  explicit Texture(const std::vector<Color>& texels);  // size x size, row by row

  // The texel of level `level` at u to the right and v down, both in [0,1].
  const Color& at(double u, double v, int level) const {
    const int side = size >> level;
    const auto texel = [side](double x) { return std::clamp(static_cast<int>(x * side), 0, side - 1); };
    return texels_[offset(level) + static_cast<size_t>(texel(v) * side + texel(u))];
  }

  // The texels of a level, row by row: for inner loops.
  const Color* level(int level) const { return texels_.data() + offset(level); }

 private:
  static size_t offset(int level) {
    constexpr std::array<size_t, texture_levels> begin = {0, 4096, 5120, 5376, 5440, 5456, 5460};
    return begin[static_cast<size_t>(level)];
  }

  std::vector<Color> texels_;
};

// A level whose texels are as large as a ray's footprint, which is `cells` wide; a texture covers one cell.
int level_for(double cells);

enum class TextureUse { wall, floor, ceiling };

std::vector<Color> random_pattern(TextureUse use, Stream random);

// A framed picture on it: a random symmetric pattern of 5 x 5 squares in two colours.
void hang_picture(std::vector<Color>& texels, Stream random);

std::vector<Color> one_tone(Color color);

Color from_hsv(double hue, double saturation, double value);

}  // namespace convssm::worlds
