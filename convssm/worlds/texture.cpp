// A family is a function of the place that gives a brightness and which of two colours it is; a grain is laid over all.
#include "convssm/worlds/texture.h"

#include <cmath>
#include <numbers>

namespace convssm::worlds {
namespace {

constexpr int kSide = Texture::size;

// How far the two colours of a pattern are apart, of what two colours can be: walls are mostly of one tone, as in real rooms
// and in the mazes of DMLab. At 64 pixels harder patterns are noise more than texture.
constexpr double kContrast = 0.4;

struct Paint {
  double second = 0;  // share of the second colour
  double light = 1;
};

// Repeats after one texture; values in [0,1).
class Grain {
 public:
  Grain(Stream& random, int cells) : cells_(cells), values_(static_cast<size_t>(cells * cells)) {
    for (double& value : values_) value = random.uniform();
  }
  double at(double u, double v) const {  // smooth between the points of a lattice
    const double x = u * cells_, y = v * cells_;
    const int i = static_cast<int>(x), j = static_cast<int>(y);
    const auto ease = [](double t) { return t * t * (3 - 2 * t); };
    const double a = ease(x - i), b = ease(y - j);
    return (1 - b) * ((1 - a) * point(i, j) + a * point(i + 1, j)) +
           b * ((1 - a) * point(i, j + 1) + a * point(i + 1, j + 1));
  }
  double point(int i, int j) const { return values_[static_cast<size_t>((j % cells_) * cells_ + i % cells_)]; }
  int cells() const { return cells_; }

 private:
  int cells_;
  std::vector<double> values_;
};

double fraction(double x) { return x - std::floor(x); }

Paint bricks(double u, double v, const Grain& grain) {
  const int row = static_cast<int>(v * 6);
  const double x = fraction(u * 3 + 0.5 * (row % 2)), y = fraction(v * 6);
  const bool mortar = x < 0.07 || y < 0.13;
  return {mortar ? 1.0 : 0.0,
          mortar ? 0.9 : 0.75 + 0.35 * grain.point(static_cast<int>(u * 3 + 0.5 * (row % 2)) % 3, row)};
}

Paint planks(double u, double v, const Grain& grain) {
  const int board = static_cast<int>(u * 5);
  const double x = fraction(u * 5),
               wave = 0.5 + 0.5 * std::sin(40 * grain.at(fraction(u * 2), fraction(v * 0.25 + 0.2 * board)));
  return {x < 0.08 ? 1.0 : 0.25 * wave, x < 0.08 ? 0.6 : 0.8 + 0.25 * grain.point(board, 1)};
}

Paint tiles(double u, double v, const Grain& grain) {
  const double x = fraction(u * 4), y = fraction(v * 4);
  const bool gap = x < 0.06 || y < 0.06;
  const bool odd = (static_cast<int>(u * 4) + static_cast<int>(v * 4)) % 2 != 0;
  return {odd ? 1.0 : 0.0, gap ? 0.55 : 0.85 + 0.15 * grain.point(static_cast<int>(u * 4), static_cast<int>(v * 4))};
}

Paint stripes(double, double v, const Grain&) {
  const double y = fraction(v * 4);
  return {y < 0.5 ? 0.0 : 1.0, y < 0.06 || (y > 0.5 && y < 0.56) ? 0.7 : 1.0};
}

Paint stones(double u, double v, const Grain& grain) {  // the distance to the two nearest of jittered points
  const int n = 5;
  double nearest = 9, second = 9, tone = 0;
  for (int j = static_cast<int>(v * n) - 1; j <= static_cast<int>(v * n) + 1; ++j) {
    for (int i = static_cast<int>(u * n) - 1; i <= static_cast<int>(u * n) + 1; ++i) {
      const int a = (i + n) % n, b = (j + n) % n;
      const double dx = i + 0.2 + 0.6 * grain.point(a, b) - u * n,
                   dy = j + 0.2 + 0.6 * grain.point(b + 1, a + 2) - v * n;
      const double d = std::hypot(dx, dy);
      if (d < nearest) {
        second = nearest, nearest = d, tone = grain.point(a + 3, b + 1);
      } else {
        second = std::min(second, d);
      }
    }
  }
  const bool gap = second - nearest < 0.14;
  return {gap ? 1.0 : 0.0, gap ? 0.6 : 0.7 + 0.4 * tone};
}

Paint diamonds(double u, double v, const Grain&) {
  const double x = std::abs(fraction(u * 3) - 0.5) + std::abs(fraction(v * 3) - 0.5);
  return {x < 0.38 ? 1.0 : 0.0, std::abs(x - 0.38) < 0.05 ? 0.6 : 1.0};
}

Paint dots(double u, double v, const Grain&) {
  const int row = static_cast<int>(v * 4);
  const double d = std::hypot(fraction(u * 4 + 0.5 * (row % 2)) - 0.5, fraction(v * 4) - 0.5);
  return {d < 0.3 ? 1.0 : 0.0, 1.0};
}

Paint plaster(double u, double v, const Grain& grain) {
  const double x = 0.6 * grain.at(u, v) + 0.4 * grain.at(fraction(2 * u), fraction(2 * v));
  return {x, 0.85 + 0.2 * x};
}

using Family = Paint (*)(double, double, const Grain&);
constexpr Family kWalls[] = {bricks, planks, tiles, stripes, stones, diamonds, dots, plaster};
constexpr Family kFloors[] = {tiles, stones, planks, diamonds, plaster};
constexpr Family kCeilings[] = {planks, tiles, plaster, stripes};

template <size_t N>
Family choose(const Family (&families)[N], Stream& random) {
  return families[random.below(N)];
}

uint8_t channel(double value) { return static_cast<uint8_t>(std::clamp(value, 0.0, 255.0)); }

Color mixed(Color a, Color b, double share, double light) {
  const auto one = [&](uint8_t x, uint8_t y) { return channel(((1 - share) * x + share * y) * light); };
  return {one(a.r, b.r), one(a.g, b.g), one(a.b, b.b)};
}

}  // namespace

Color from_hsv(double hue, double saturation, double value) {
  const auto one = [&](double shift) {
    const double k = std::fmod(shift + 6 * hue, 6.0);
    return channel(255 * value * (1 - saturation * std::clamp(std::min(k, 4 - k), 0.0, 1.0)));
  };
  return {one(5), one(3), one(1)};
}

Texture::Texture(const std::vector<Color>& texels) : texels_(texels) {
  texels_.reserve(5461);
  for (int from = 0; from + 1 < texture_levels; ++from) {
    const int side = size >> (from + 1);
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const Color* corner = level(from) + (2 * y) * (2 * side) + 2 * x;
        const auto mean = [&](uint8_t Color::*c) {
          return static_cast<uint8_t>(
              (corner[0].*c + corner[1].*c + corner[2 * side].*c + corner[2 * side + 1].*c + 2) / 4);
        };
        texels_.push_back({mean(&Color::r), mean(&Color::g), mean(&Color::b)});
      }
    }
  }
}

int level_for(double cells) {
  const double texels = cells * Texture::size;
  if (!(texels > 1)) return 0;
  return std::min(static_cast<int>(std::log2(texels) + 0.5), texture_levels - 1);
}

std::vector<Color> random_pattern(TextureUse use, Stream random) {
  const Family family = use == TextureUse::wall    ? choose(kWalls, random)
                        : use == TextureUse::floor ? choose(kFloors, random)
                                                   : choose(kCeilings, random);
  const bool wall = use == TextureUse::wall;
  const double hue = random.uniform();
  const Color first = from_hsv(hue, wall ? random.uniform(0.45, 0.9) : random.uniform(0.15, 0.5),
                               random.uniform(wall ? 0.65 : 0.5, 0.95));
  const double other = random.uniform() < 0.5 ? hue : random.uniform();
  const Color second = mixed(first, from_hsv(other, random.uniform(0.1, 0.6), random.uniform(0.3, 0.85)), kContrast, 1);
  const Grain grain(random, 8), fine(random, 32);
  std::vector<Color> texels;
  texels.reserve(kSide * kSide);
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const double u = (x + 0.5) / kSide, v = (y + 0.5) / kSide;
      const Paint paint = family(u, v, grain);
      texels.push_back(mixed(first, second, paint.second, paint.light * (0.95 + 0.1 * fine.point(x / 2, y / 2))));
    }
  }
  return texels;
}

std::vector<Color> one_tone(Color color) { return std::vector<Color>(kSide * kSide, color); }

void hang_picture(std::vector<Color>& texels, Stream random) {
  constexpr int kLeft = 14, kSquare = 7, kFrame = 3, kSquares = 5, kEnd = kLeft + kSquare * kSquares;
  const double hue = random.uniform();
  const Color ink = from_hsv(hue, 0.85, 0.95),
              paper = from_hsv(hue + random.uniform(0.35, 0.65), 0.5, random.uniform(0.15, 0.9));
  const Color frame = from_hsv(0.1, 0.6, random.uniform(0.2, 0.8));
  std::array<std::array<bool, 3>, kSquares> pattern;
  for (auto& row : pattern) {
    for (bool& square : row) square = random.uniform() < 0.5;
  }
  for (int y = kLeft - kFrame; y < kEnd + kFrame; ++y) {
    for (int x = kLeft - kFrame; x < kEnd + kFrame; ++x) {
      const bool inside = x >= kLeft && y >= kLeft && x < kEnd && y < kEnd;
      Color& texel = texels[static_cast<size_t>(y * kSide + x)];
      texel = frame;
      if (!inside) continue;
      const int i = (x - kLeft) / kSquare, j = (y - kLeft) / kSquare;
      texel = pattern[static_cast<size_t>(j)][static_cast<size_t>(std::min(i, kSquares - 1 - i))] ? ink : paper;
    }
  }
}

}  // namespace convssm::worlds
