// The landscape, one column of rays after the other. Rays of a column share their way on the map: it goes from block to
// block, front to back, and each block fills the rows that it covers. Solid columns fill from the bottom up, so one number
// (`open`) says which rows are left; leaves hang above the ground and need a mark for each row.
#include <algorithm>
#include <cmath>
#include <limits>

#include "convssm/worlds/camera.h"
#include "convssm/worlds/terrain.h"

namespace convssm::worlds {
namespace {

constexpr double kFogStart = 20, kCloudHeight = 40, kCloudSize = 10;
constexpr int kTop = 256, kEastWest = 218, kNorthSouth = 184, kBottom = 150;

enum class Face { top, bottom, east_west, north_south };

int face_light(Face face) {
  return face == Face::top ? kTop : face == Face::bottom ? kBottom : face == Face::east_west ? kEastWest : kNorthSouth;
}

// Rounds down, as std::floor does, which is a call on machines without SSE4.1. Places are never below -4096.
int64_t whole(double place) { return static_cast<int64_t>(place + 4096) - 4096; }

uint8_t mix_channel(int a, int b, int share) { return static_cast<uint8_t>((a * (256 - share) + b * share) >> 8); }

Color mix_colors(Color a, Color b, int share) {  // share of b in 1/256
  return {mix_channel(a.r, b.r, share), mix_channel(a.g, b.g, share), mix_channel(a.b, b.b, share)};
}

Color lit(Color c, int light) {
  const auto one = [light](int x) { return static_cast<uint8_t>(std::clamp((x * light) >> 8, 0, 255)); };
  return {one(c.r), one(c.g), one(c.b)};
}

// What is the same for all columns, for each row of rays.
struct Row {
  double slope, inverse;  // how far a ray sinks for each block of depth, and 1 / that
  Color sky;              // without clouds
  double cloud;           // the depth at which it meets the clouds; 0: never
  int cover;              // how white they are there, in 1/256
};

class Sky {
 public:
  static constexpr Color zenith = {92, 148, 226}, haze = {196, 216, 236}, white = {250, 251, 253};

  explicit Sky(uint64_t seed) : clouds_(seed) {}

  static void fill(Row& row) {
    const double rise = -row.slope;
    row.sky = mix_colors(haze, zenith, static_cast<int>(256 * std::clamp(1.6 * rise, 0.0, 1.0)));
    row.cloud = rise > 0.06 ? kCloudHeight / rise : 0;
    row.cover = static_cast<int>(200 * std::clamp((rise - 0.06) * 6, 0.0, 1.0));
  }

  Color at(const Row& row, double x, double y) const {  // where the ray meets the clouds
    if (row.cloud == 0) return row.sky;
    const auto cell = [](double place) { return static_cast<uint64_t>(whole(place * (1 / kCloudSize)) & 15); };
    uint64_t hash = (cell(y) * 16 + cell(x) + 1) * 0x9e3779b97f4a7c15ULL ^ clouds_;
    hash = (hash ^ (hash >> 31)) * 0xbf58476d1ce4e5b9ULL;
    return (hash >> 40) % 100 < 22 ? mix_colors(row.sky, white, row.cover) : row.sky;
  }

 private:
  uint64_t clouds_;
};

// What the depth does: the grain fades where its texels become smaller than rays, haze comes up. By 1/16 of a block.
struct Finish {
  int grain, haze;
};

const std::vector<Finish>& finishes() {
  static const std::vector<Finish> all = [] {
    std::vector<Finish> table;
    for (int i = 0; i <= static_cast<int>(16 * Terrain::deepest) + 16; ++i) {
      const double depth = (i + 0.5) / 16;
      const double haze = std::clamp((depth - kFogStart) / (Terrain::deepest - kFogStart), 0.0, 1.0);
      table.push_back({static_cast<int>(256 / (1 + 0.004 * depth * depth)), static_cast<int>(256 * haze * haze)});
    }
    return table;
  }();
  return all;
}

// One column of rays on its way.
class Marcher {
 public:
  Marcher(const Terrain& world, const Camera& camera, const Pose& pose, ColumnBuffer& out, const Sky& sky,
          std::vector<uint32_t>* rays)
      : ground_(world.ground()),
        camera_(camera),
        x_(cells(pose.x)),
        y_(cells(pose.y)),
        eye_(world.eye(pose)),
        horizon_(Terrain::horizon * static_cast<double>(camera.rows())),
        last_(static_cast<double>(camera.rows())),
        out_(out),
        sky_(sky),
        rays_(rays),
        finish_(finishes().data()),
        rows_(static_cast<size_t>(camera.rows())),
        filled_(static_cast<size_t>(camera.rows())) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const double slope = (static_cast<double>(i) + 0.5 - horizon_) / camera.focal();
      rows_[i] = {slope, 1 / slope, {}, 0, 0};
      Sky::fill(rows_[i]);
    }
  }

  void run(int64_t column) {
    std::tie(dx_, dy_) = camera_.ray(column);
    std::ranges::fill(filled_, false);
    open_ = camera_.rows();
    march();
    for (int64_t i = 0; i < open_; ++i) {
      const Row& row = rows_[static_cast<size_t>(i)];
      if (!filled_[static_cast<size_t>(i)]) out_.add(i, sky_.at(row, x_ + row.cloud * dx_, y_ + row.cloud * dy_), 256);
    }
    out_.next_column();
  }

 private:
  const Row& row(int64_t i) const { return rows_[static_cast<size_t>(i)]; }

  // The first row whose ray is at the height z or below it, at the depth 1 / inverse.
  int64_t row_of(double z, double inverse) const {
    const double place = std::clamp(horizon_ + camera_.focal() * (eye_ - z) * inverse - 0.5, 0.0, last_);
    const auto below = static_cast<int64_t>(place);
    return below + (static_cast<double>(below) < place ? 1 : 0);
  }

  void march() {
    constexpr double never = std::numeric_limits<double>::infinity();
    auto i = static_cast<int64_t>(std::floor(x_)), j = static_cast<int64_t>(std::floor(y_));
    const double each_x = dx_ != 0 ? std::abs(1 / dx_) : never, each_y = dy_ != 0 ? std::abs(1 / dy_) : never;
    double next_x =
        dx_ == 0 ? never : (dx_ > 0 ? static_cast<double>(i + 1) - x_ : x_ - static_cast<double>(i)) * each_x;
    double next_y =
        dy_ == 0 ? never : (dy_ > 0 ? static_cast<double>(j + 1) - y_ : y_ - static_cast<double>(j)) * each_y;
    double depth = 1e-6;
    Face face = Face::east_west;
    while (depth < Terrain::deepest && open_ > 0) {
      const double beyond = std::min({next_x, next_y, Terrain::deepest});
      draw(i, j, depth, beyond, face);
      // All rays that are left rise above everything.
      if (open_ > 0 && row(open_ - 1).slope <= 0 && eye_ - row(open_ - 1).slope * beyond > ground_.highest()) return;
      if (next_x < next_y) {
        i += dx_ > 0 ? 1 : -1, depth = next_x, next_x += each_x, face = Face::east_west;
      } else {
        j += dy_ > 0 ? 1 : -1, depth = next_y, next_y += each_y, face = Face::north_south;
      }
    }
  }

  void draw(int64_t i, int64_t j, double near, double far, Face face) {
    const Column& c = ground_.at(i, j);
    const double at_near = 1 / near, at_far = 1 / far;
    patch_ = static_cast<size_t>(((j & (Ground::side - 1)) / Terrain::patch) * (Ground::side / Terrain::patch) +
                                 (i & (Ground::side - 1)) / Terrain::patch);
    if (c.has_leaves()) {
      const int64_t top = row_of(c.leaf_high, at_near), bottom = row_of(c.leaf_low, at_near);
      side_rows(c.leaf, face, near, top, bottom);
      if (eye_ > c.leaf_high) flat_rows(c.leaf, Face::top, c.leaf_high, row_of(c.leaf_high, at_far), top);
      if (eye_ < c.leaf_low) flat_rows(c.leaf, Face::bottom, c.leaf_low, bottom, row_of(c.leaf_low, at_far));
    }
    const int16_t high = c.solid();
    const int64_t top = row_of(high, at_near);
    if (top < open_) {
      const int64_t foot = c.trunk > c.height ? row_of(c.height, at_near) : top;
      side_rows(Material::wood, face, near, top, std::min(open_, foot));
      solid_side(c, face, near, foot);
      open_ = top;
    }
    if (eye_ <= high) return;
    const int64_t back = row_of(high, at_far);
    if (back >= open_) return;
    flat_rows(c.trunk > c.height ? Material::wood : c.surface, Face::top, high, back, open_);
    open_ = back;
  }

  // The side of the ground: earth below grass, stone below snow.
  void solid_side(const Column& c, Face face, double depth, int64_t top) {
    if (top >= open_) return;
    const bool grass = c.surface == Material::grass || c.surface == Material::dry_grass;
    const Material inner = grass ? Material::dirt : c.surface == Material::snow ? Material::stone : c.surface;
    const int64_t rim = std::clamp(row_of(c.height - 0.25, 1 / depth), top, open_);
    side_rows(c.surface, face, depth, top, rim);
    side_rows(inner, face, depth, rim, open_);
  }

  void side_rows(Material material, Face face, double depth, int64_t begin, int64_t end) {
    if (begin >= end) return;
    const int64_t u = whole((face == Face::east_west ? y_ + depth * dy_ : x_ + depth * dx_) * Ground::texels);
    const Finish finish = finish_at(depth);
    for (int64_t i = begin; i < end; ++i) {
      put(i, material, face, u, -whole((eye_ - row(i).slope * depth) * Ground::texels), finish);
    }
  }

  void flat_rows(Material material, Face face, double z, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double depth = (eye_ - z) * row(i).inverse;
      const int64_t u = whole((x_ + depth * dx_) * Ground::texels), v = whole((y_ + depth * dy_) * Ground::texels);
      put(i, material, face, u, v, finish_at(depth));
    }
  }

  Finish finish_at(double depth) const {
    return finish_[static_cast<size_t>(std::clamp(16 * depth, 0.0, 16 * Terrain::deepest))];
  }

  void put(int64_t i, Material material, Face face, int64_t u, int64_t v, Finish finish) {
    if (filled_[static_cast<size_t>(i)]) return;
    filled_[static_cast<size_t>(i)] = true;
    const int light = (face_light(face) * (256 + ((ground_.grain(material, u, v) * finish.grain) >> 8))) >> 8;
    out_.add(i, mix_colors(lit(ground_.color(material), light), Sky::haze, finish.haze), 256);
    if (rays_ != nullptr) ++(*rays_)[patch_];
  }

  const Ground& ground_;
  const Camera& camera_;
  double x_, y_, eye_, horizon_, last_, dx_ = 0, dy_ = 0;
  ColumnBuffer& out_;
  const Sky& sky_;
  std::vector<uint32_t>* rays_;
  const Finish* finish_;
  std::vector<Row> rows_;
  std::vector<char> filled_;
  int64_t open_ = 0;  // rows from here on are filled
  size_t patch_ = 0;
};

}  // namespace

void Terrain::render(const Pose& pose, std::span<uint8_t> rgb, Sight* sight) const {
  const Camera camera(options_.view, pose.heading, rgb);
  ColumnBuffer buffer(options_.view, rgb);
  const Sky sky(key_);
  std::vector<uint32_t> rays(sight != nullptr ? static_cast<size_t>(surfaces()) : 0);
  Marcher marcher(*this, camera, pose, buffer, sky, sight != nullptr ? &rays : nullptr);
  for (int64_t column = 0; column < camera.columns(); ++column) marcher.run(column);
  if (sight != nullptr) *sight = to_sight(rays);
}

}  // namespace convssm::worlds
