// Four octaves of noise make the hills, one more says where it is dry, another where the woods are.
#include "convssm/worlds/ground.h"

#include <algorithm>
#include <cmath>

namespace convssm::worlds {
namespace {

constexpr int16_t kWater = 8, kSnow = 19, kStone = 16;

// Smooth noise in [0,1) on a lattice of `points` x `points` that covers the whole ground and repeats with it.
class Noise {
 public:
  Noise(int64_t points, Stream random) : points_(points), values_(static_cast<size_t>(points * points)) {
    for (double& value : values_) value = random.uniform();
  }
  double at(int64_t x, int64_t y) const {
    const double u = static_cast<double>(x * points_) / Ground::side,
                 v = static_cast<double>(y * points_) / Ground::side;
    const auto i = static_cast<int64_t>(u), j = static_cast<int64_t>(v);
    const auto ease = [](double t) { return t * t * (3 - 2 * t); };
    const double a = ease(u - static_cast<double>(i)), b = ease(v - static_cast<double>(j));
    return (1 - b) * ((1 - a) * point(i, j) + a * point(i + 1, j)) +
           b * ((1 - a) * point(i, j + 1) + a * point(i + 1, j + 1));
  }

 private:
  double point(int64_t i, int64_t j) const {
    return values_[static_cast<size_t>((j % points_) * points_ + i % points_)];
  }

  int64_t points_;
  std::vector<double> values_;
};

}  // namespace

Ground::Ground(double trees, Stream random) : columns_(static_cast<size_t>(side * side)) {
  raise_hills(random.split("hills"));
  build_pillars(random.split("pillars"));
  plant_trees(trees, random.split("trees"));
  choose_colors(random.split("colors"));
  for (const Column& c : columns_) highest_ = std::max({highest_, c.solid(), c.leaf_high});
}

void Ground::raise_hills(Stream random) {
  const Noise wide(6, random.split("wide")), middle(13, random.split("middle")), small(29, random.split("small"));
  const Noise fine(61, random.split("fine")), dry(9, random.split("dry"));
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const double level = 0.52 * wide.at(x, y) + 0.28 * middle.at(x, y) + 0.14 * small.at(x, y) + 0.06 * fine.at(x, y);
      const double height = 10 + 30 * (level - 0.44) + 20 * std::max(0.0, level - 0.6);
      Column& c = column(x, y);
      c.height = static_cast<int16_t>(std::max(std::floor(height), 1.0));
      c.surface = c.height <= kWater       ? Material::water
                  : c.height == kWater + 1 ? Material::sand
                  : c.height >= kSnow      ? Material::snow
                  : c.height >= kStone     ? Material::stone
                  : dry.at(x, y) > 0.62    ? Material::dry_grass
                                           : Material::grass;
      c.height = std::max(c.height, kWater);
    }
  }
}

// Bright blocks on top of each other, to be recognized from afar.
void Ground::build_pillars(Stream random) {
  for (int i = 0; i < 90; ++i) {
    const auto x = static_cast<int64_t>(random.below(side)), y = static_cast<int64_t>(random.below(side));
    const auto width = 1 + static_cast<int64_t>(random.below(2)), tall = 2 + static_cast<int64_t>(random.below(5));
    const auto paint = static_cast<uint8_t>(static_cast<uint8_t>(Material::paint_first) + random.below(painted));
    if (at(x, y).surface == Material::water) continue;
    const int64_t top = at(x, y).height + tall;
    for (int64_t b = 0; b < width; ++b) {
      for (int64_t a = 0; a < width; ++a) {
        column(x + a, y + b).height = static_cast<int16_t>(top);
        column(x + a, y + b).surface = static_cast<Material>(paint);
      }
    }
  }
}

void Ground::plant_trees(double trees, Stream random) {
  const Noise woods(11, random.split("woods"));
  for (int64_t y = 0; y < side; y += 2) {
    for (int64_t x = 0; x < side; x += 2) {
      const double dice = random.uniform();
      const int64_t i = x + static_cast<int64_t>(random.below(2)), j = y + static_cast<int64_t>(random.below(2));
      const bool fir = random.uniform() < (at(i, j).height > 13 ? 0.9 : 0.15);
      const Column& here = at(i, j);
      const bool soil = here.surface == Material::grass || here.surface == Material::dry_grass;
      const double dense = woods.at(x, y) - 0.35;
      if (!soil || dice > trees * 0.2 * std::max(dense, 0.02)) continue;
      const auto trunk = static_cast<int16_t>(3 + random.below(2)),
                 crown = static_cast<int16_t>(fir ? 5 : 2 + random.below(2));
      const int64_t wide = fir ? 1 : 1 + static_cast<int64_t>(random.below(2));
      const auto foot = here.height, low = static_cast<int16_t>(foot + trunk);
      for (int64_t b = -wide; b <= wide; ++b) {
        for (int64_t a = -wide; a <= wide; ++a) {
          Column& c = column(i + a, j + b);
          const auto off = static_cast<int16_t>(std::abs(a) + std::abs(b));
          if (c.trunk != 0 || c.height >= low || off > wide + 1) continue;
          c.leaf_low = low;
          c.leaf_high = static_cast<int16_t>(low + std::max(1, fir ? crown - 2 * off : crown - (off > wide ? 1 : 0)));
          c.leaf = fir ? Material::needles : Material::leaves;
        }
      }
      column(i, j).trunk = low;
    }
  }
}

void Ground::choose_colors(Stream random) {
  const auto near = [&](double hue, double saturation, double value) {
    return from_hsv(std::fmod(hue + random.uniform(-0.03, 0.03) + 1, 1.0), saturation * random.uniform(0.85, 1.15),
                    std::min(1.0, value * random.uniform(0.9, 1.1)));
  };
  const double season = random.uniform();  // autumn now and then
  colors_ = {
      near(0.28, 0.55, 0.62), near(0.15, 0.5, 0.72),  near(0.07, 0.5, 0.45),
      near(0.13, 0.3, 0.88),  near(0.6, 0.05, 0.55),  near(0.58, 0.04, 0.97),
      near(0.58, 0.65, 0.8),  near(0.07, 0.55, 0.38), season < 0.75 ? near(0.3, 0.6, 0.42) : near(0.07, 0.75, 0.75),
      near(0.38, 0.5, 0.33)};
  const double hue = random.uniform();
  for (int i = 0; i < painted; ++i)
    colors_.push_back(from_hsv(std::fmod(hue + i / static_cast<double>(painted), 1.0), 0.8, 0.9));
  for (int material = 0; material < materials; ++material) {
    const bool calm = material == static_cast<int>(Material::water) || material == static_cast<int>(Material::snow);
    const bool rough =
        material == static_cast<int>(Material::leaves) || material == static_cast<int>(Material::needles);
    const double depth = calm ? 0.05 : rough ? 0.3 : 0.16;
    for (int64_t i = 0; i < texels * texels; ++i)
      grain_.push_back(static_cast<int>(256 * depth * random.uniform(-1, 1)));
  }
}

bool Ground::walkable(int64_t x, int64_t y) const {
  const Column& c = at(x, y);
  return c.surface != Material::water && c.trunk == 0 && (!c.has_leaves() || c.leaf_low >= c.height + 3);
}

}  // namespace convssm::worlds
