// The landscape against a tracer that follows each ray by itself: boxes met one by one, in double.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <optional>

#include "convssm/worlds/record.h"
#include "convssm/worlds/terrain.h"

namespace convssm::worlds {
namespace {

struct BoxHit {
  double depth = 1e9;
  int axis = 0;  // 0, 1: a side to the east or west, to the north or south; 2 top, 3 bottom
};

struct LandRay {
  double x, y, z, dx, dy, dz;
};

// Where the ray enters the box [x0,x0+1] x [y0,y0+1] x [low,high], by its three pairs of planes.
std::optional<BoxHit> enter_box(const LandRay& ray, double x0, double y0, double low, double high) {
  double near = -1e18, far = 1e18;
  int axis = 0;
  const auto cut = [&](double from, double d, double lo, double hi, int which) {
    if (d == 0) {
      if (from < lo || from > hi) far = -1e18;
      return;
    }
    const double a = (lo - from) / d, b = (hi - from) / d;
    if (std::min(a, b) > near) near = std::min(a, b), axis = which == 2 && d > 0 ? 3 : which;
    far = std::min(far, std::max(a, b));
  };
  cut(ray.x, ray.dx, x0, x0 + 1, 0);
  cut(ray.y, ray.dy, y0, y0 + 1, 1);
  cut(ray.z, ray.dz, low, high, 2);
  if (near > far || near <= 0 || near >= Terrain::deepest) return std::nullopt;
  return BoxHit{near, axis};
}

TEST(TerrainRender, AgreesWithAPlainTracer) {
  TerrainOptions options;
  options.view = {.width = 32, .height = 32, .fov = 75, .samples = 1};
  options.trees = 4;
  const auto world = std::make_shared<Terrain>(options, 5, "train", 2);
  const Recorded walk = record_poses(world, 0, 120);
  const Ground& ground = world->ground();
  std::vector<uint8_t> frame(static_cast<size_t>(world->view().bytes()));
  int64_t different = 0, rays_off = 0, pixels = 0, leaves = 0;
  for (const size_t t : {0, 25, 70, 119}) {
    const Pose& pose = walk.poses[t];
    Sight sight;
    world->render(pose, frame, &sight);
    std::map<uint32_t, int64_t> rays;
    for (int64_t pixel = 0; pixel < 32 * 32; ++pixel) {
      const double focal = 16 / std::tan(75 * std::numbers::pi / 360), angle = pose.heading * std::numbers::pi / 12;
      const double side = (static_cast<double>(pixel % 32) + 0.5 - 16) / focal;
      const double down = (static_cast<double>(pixel / 32) + 0.5 - 0.42 * 32) / focal;
      const LandRay ray{cells(pose.x),
                        cells(pose.y),
                        world->eye(pose),
                        std::cos(angle) - side * std::sin(angle),
                        std::sin(angle) + side * std::cos(angle),
                        -down};
      BoxHit best;
      Material material = Material::grass;
      int64_t at_x = 0, at_y = 0;
      const double reach = Terrain::deepest * std::hypot(ray.dx, ray.dy) + 1;
      for (double along = 0; along < reach; along += 0.5) {  // blocks near the way of the ray
        const double px = ray.x + along * ray.dx / std::hypot(ray.dx, ray.dy),
                     py = ray.y + along * ray.dy / std::hypot(ray.dx, ray.dy);
        if (best.depth < (along - 3) / std::hypot(ray.dx, ray.dy)) break;
        for (int64_t j = static_cast<int64_t>(std::floor(py)) - 1; j <= static_cast<int64_t>(std::floor(py)) + 1; ++j) {
          for (int64_t i = static_cast<int64_t>(std::floor(px)) - 1; i <= static_cast<int64_t>(std::floor(px)) + 1;
               ++i) {
            const Column& c = ground.at(i, j);
            const auto meet = [&](double low, double high, Material made_of) {
              const auto hit = enter_box(ray, static_cast<double>(i), static_cast<double>(j), low, high);
              if (!hit || hit->depth >= best.depth) return;
              best = *hit, material = made_of, at_x = i, at_y = j;
            };
            meet(-1000, c.height, c.surface);
            if (c.trunk > c.height) meet(c.height, c.trunk, Material::wood);
            if (c.has_leaves()) meet(c.leaf_low, c.leaf_high, c.leaf);
          }
        }
      }
      ++pixels;
      if (best.depth > 1e8) continue;
      ++rays[static_cast<uint32_t>(((at_y & 255) / 4) * 64 + (at_x & 255) / 4)];
      leaves += material == Material::leaves || material == Material::needles ? 1 : 0;
      const double z = ray.z + best.depth * ray.dz, px = ray.x + best.depth * ray.dx, py = ray.y + best.depth * ray.dy;
      const bool rim = z > ground.at(at_x, at_y).height - 0.25;
      if (best.axis < 2 && !rim && (material == Material::grass || material == Material::dry_grass))
        material = Material::dirt;
      if (best.axis < 2 && !rim && material == Material::snow) material = Material::stone;
      const double haze = std::clamp((best.depth - 20) / 44, 0.0, 1.0), lights[] = {218, 184, 256, 150};
      const auto texel = [](double place) { return static_cast<int64_t>(std::floor(place * 8)); };
      const int64_t u = best.axis == 0 ? texel(py) : texel(px), v = best.axis < 2 ? -texel(z) : texel(py);
      const double grain = ground.grain(material, u, v) / 256.0 / (1 + 0.004 * best.depth * best.depth);
      const Color color = ground.color(material), sky = {196, 216, 236};
      const auto off = [&](size_t c, double own, double far) {
        const double value = std::min(255.0, own * lights[best.axis] / 256 * (1 + grain));
        return std::abs(value * (1 - haze * haze) + far * haze * haze - frame[static_cast<size_t>(3 * pixel) + c]) > 4;
      };
      different += off(0, color.r, sky.r) || off(1, color.g, sky.g) || off(2, color.b, sky.b) ? 1 : 0;
    }
    for (const Surface& s : sight) rays_off += std::abs(static_cast<int64_t>(s.rays) - rays[s.id]);
  }
  EXPECT_LT(static_cast<double>(different), 0.01 * static_cast<double>(pixels)) << different << " of " << pixels;
  EXPECT_LT(static_cast<double>(rays_off), 0.01 * static_cast<double>(pixels)) << rays_off << " of " << pixels;
  EXPECT_GT(leaves, 10) << "no leaves in sight";
}

}  // namespace
}  // namespace convssm::worlds
