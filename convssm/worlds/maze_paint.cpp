// How a maze looks: a few styles, each with its own wall, floor and ceiling, and pictures.
#include <algorithm>
#include <cmath>

#include "convssm/worlds/maze.h"

namespace convssm::worlds {
namespace {

constexpr size_t kStyles = 5, kPictures = 20;
constexpr uint64_t kTones = 4;

}  // namespace

double Maze::shade(double depth) const {
  return options_.look == MazeLook::patterns ? 1 / (1 + 0.03 * depth * depth) : 1;
}

// Some places are chosen, each with its own wall, floor and ceiling; a cell looks like the nearest of them.
void Maze::paint() {
  if (options_.look == MazeLook::rooms) return paint_rooms();
  const Stream random = random_.split("paint");
  std::vector<std::vector<Color>> patterns;
  const auto add = [&](const std::vector<Color>& texels) { textures_.emplace_back(texels); };
  for (size_t i = 0; i < kStyles; ++i) patterns.push_back(random_pattern(TextureUse::wall, random.split("wall", i)));
  for (const auto& texels : patterns) add(texels);
  for (size_t i = 0; i < kStyles; ++i) add(random_pattern(TextureUse::floor, random.split("floor", i)));
  for (size_t i = 0; i < kStyles; ++i) add(random_pattern(TextureUse::ceiling, random.split("ceiling", i)));
  for (size_t i = 0; i < kPictures; ++i) {
    std::vector<Color> hung = patterns[i % kStyles];
    hang_picture(hung, random.split("picture", i));
    add(hung);
  }
  Stream places = random.split("places");
  std::vector<std::pair<double, double>> middles;
  const auto side = static_cast<double>(layout_.size());
  for (size_t i = 0; i < kStyles; ++i) middles.emplace_back(places.uniform(0, side), places.uniform(0, side));
  for (int64_t cell = 0; cell < layout_.cells(); ++cell) {
    const double x = static_cast<double>(cell % layout_.size()) + 0.5,
                 y = static_cast<double>(cell / layout_.size()) + 0.5;
    const auto nearest =
        std::ranges::min_element(middles, {}, [&](const auto& m) { return std::hypot(m.first - x, m.second - y); });
    const auto style = static_cast<uint8_t>(nearest - middles.begin());
    floors_.push_back(static_cast<uint8_t>(kStyles + style));
    ceilings_.push_back(static_cast<uint8_t>(2 * kStyles + style));
    for (int d = 0; d < 4; ++d) {
      const double dice = places.uniform();
      const auto other = static_cast<uint8_t>(places.below(kStyles)),
                 picture = static_cast<uint8_t>(places.below(kPictures / kStyles));
      const auto hung = static_cast<uint8_t>(3 * kStyles + kStyles * picture + style);
      walls_.push_back(dice < 0.3 ? hung : dice < 0.4 ? other : style);
    }
  }
}

// Every cell draws its tone by itself.
void Maze::paint_rooms() {
  for (uint64_t i = 0; i < kTones; ++i) {
    textures_.emplace_back(one_tone(from_hsv(static_cast<double>(i) / kTones, 0.7, 0.8)));
  }
  for (const double lightness : {0.3, 0.9}) textures_.emplace_back(one_tone(from_hsv(0, 0, lightness)));
  Stream random = random_.split("rooms");
  for (int64_t cell = 0; cell < layout_.cells(); ++cell) {
    walls_.insert(walls_.end(), 4, static_cast<uint8_t>(random.below(kTones)));
    floors_.push_back(kTones);
    ceilings_.push_back(kTones + 1);
  }
}

}  // namespace convssm::worlds
