// moving-mnist: digits that move in straight lines and bounce off the edges, made on the fly. Every clip can be as long
// as one asks for; its first frames do not depend on how long.
//   position p ~ U[0,1]^2, velocity v = (cos a, sin a), a ~ U[0,2pi); for each frame, before it is drawn: p += step v,
//   and a coordinate that reaches 0 or 1 stays there and turns back (clamped, not mirrored). The digit's upper left
//   corner is floor((image_size - digit_size) p); where digits overlap the brighter pixel wins. With `subpixel` it is drawn
//   where it is, by bilinear interpolation.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/data/clip_counts.h"
#include "convssm/data/dataset.h"

namespace convssm::data {

struct MovingMnistOptions {
  int64_t digits = 2;
  int64_t image_size = 64;
  int64_t digit_size = 28;
  double step = 0.15;  // of the distance from edge to edge, per frame
  ClipCounts counts{10000, 256, 1024};
  std::string images;       // an IDX file, its last twelfth for validation; "": digits drawn by this program
  std::string test_images;  // an IDX file of test digits; "": the last sixth of `images`, validation before it
  uint64_t shapes = 0;      // only this many different digits of a split, the first ones; 0: all
  bool mix_splits = false;  // all splits take all training digits, as the published experiments did
  bool subpixel = false;    // digits move by fractions of a pixel; the published ones jump from pixel to pixel

  static MovingMnistOptions from_json(const nlohmann::json& json);
};

std::shared_ptr<const Dataset> make_moving_mnist(const nlohmann::json& options, uint64_t seed);

// The options of the same digits with `factor` frames where these have one: a `step` that is as much smaller.
nlohmann::json finer_moving_mnist(const nlohmann::json& options, int64_t factor);

struct Offset {
  int64_t top = 0, left = 0;
  double down = 0, right = 0;  // what was cut off, in [0,1)
};

// Where a digit is drawn in each frame, for a start (x, y) and an angle; `room` is image_size - digit_size.
std::vector<Offset> bouncing_trajectory(double x, double y, double angle, double step, int64_t room, int64_t frames);

}  // namespace convssm::data
