// The ground of a terrain: a square of columns of blocks, made by noise, that repeats in both directions. Each column has a
// solid height and what it is made of, perhaps a trunk on it, and perhaps a box of leaves above it.
#pragma once

#include <cstdint>
#include <vector>

#include "convssm/base/random.h"
#include "convssm/worlds/texture.h"

namespace convssm::worlds {

enum class Material : uint8_t { grass, dry_grass, dirt, sand, stone, snow, water, wood, leaves, needles, paint_first };
inline constexpr int painted = 4;  // materials paint_first .. paint_first + painted - 1: bright blocks
inline constexpr int materials = static_cast<int>(Material::paint_first) + painted;

struct Column {
  int16_t height = 0;                   // of the solid part, water included
  int16_t trunk = 0;                    // to where a trunk reaches; 0: there is none
  int16_t leaf_low = 0, leaf_high = 0;  // equal: no leaves
  Material surface = Material::grass, leaf = Material::leaves;

  int16_t solid() const { return trunk > height ? trunk : height; }
  bool has_leaves() const { return leaf_high > leaf_low; }
};

class Ground {
 public:
  static constexpr int64_t side = 256;  // blocks; a power of two
  static constexpr int64_t texels = 8;  // a side of a block, for the grain

  Ground(double trees, Stream random);

  const Column& at(int64_t x, int64_t y) const { return columns_[index(x, y)]; }
  int16_t highest() const { return highest_; }  // of everything
  bool walkable(int64_t x, int64_t y) const;    // no water, no trunk, nothing in the way of a head

  // The colour of a material; the grain of its texels is a light in 1/256.
  const Color& color(Material material) const { return colors_[static_cast<size_t>(material)]; }
  int grain(Material material, int64_t u, int64_t v) const {
    const auto place = static_cast<size_t>((v & (texels - 1)) * texels + (u & (texels - 1)));
    return grain_[static_cast<size_t>(material) * texels * texels + place];
  }

 private:
  static size_t index(int64_t x, int64_t y) { return static_cast<size_t>((y & (side - 1)) * side + (x & (side - 1))); }
  Column& column(int64_t x, int64_t y) { return columns_[index(x, y)]; }
  void raise_hills(Stream random);
  void plant_trees(double trees, Stream random);
  void build_pillars(Stream random);
  void choose_colors(Stream random);

  std::vector<Column> columns_;
  std::vector<Color> colors_;
  std::vector<int> grain_;
  int16_t highest_ = 0;
};

}  // namespace convssm::worlds
