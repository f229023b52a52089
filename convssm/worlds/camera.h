// What the renderers share: rays of a frame, the mean of the rays of a pixel, and counts of rays as a sight.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "convssm/worlds/texture.h"
#include "convssm/worlds/world.h"

namespace convssm::worlds {

// Columns and rows of rays, `samples` of each for a pixel.
class Camera {
 public:
  // Error(usage) unless `rgb` has the bytes of a frame.
  Camera(const View& view, int heading, std::span<const uint8_t> rgb);

  int64_t columns() const { return columns_; }
  int64_t rows() const { return rows_; }
  double focal() const { return focal_; }  // in rays

  // The direction on the map of the rays of a column: one ahead, and to the side.
  std::pair<double, double> ray(int64_t column) const {
    const double side = (static_cast<double>(column) + 0.5 - 0.5 * static_cast<double>(columns_)) / focal_;
    return {cos_ - side * sin_, sin_ + side * cos_};
  }

 private:
  int64_t columns_, rows_;
  double focal_, cos_, sin_;
};

// Sums up the rays of one column of pixels and writes it when all its rays are there.
class ColumnBuffer {
 public:
  ColumnBuffer(const View& view, std::span<uint8_t> rgb)
      : view_(view),
        rgb_(rgb),
        sums_(static_cast<size_t>(3 * view.height)),
        pixel_of_(static_cast<size_t>(view.height * view.samples)) {
    for (size_t row = 0; row < pixel_of_.size(); ++row) pixel_of_[row] = 3 * (row / static_cast<size_t>(view.samples));
  }

  // A ray of this row ends on a colour; light is in 1/256.
  void add(int64_t row, Color color, int light) {
    uint32_t* sum = sums_.data() + pixel_of_[static_cast<size_t>(row)];
    sum[0] += static_cast<uint32_t>(color.r * light) >> 8;
    sum[1] += static_cast<uint32_t>(color.g * light) >> 8;
    sum[2] += static_cast<uint32_t>(color.b * light) >> 8;
  }

  void next_column();

 private:
  const View& view_;
  std::span<uint8_t> rgb_;
  std::vector<uint32_t> sums_;
  std::vector<size_t> pixel_of_;  // the first sum of a row's pixel
  int64_t column_ = 0;
};

// From the number of rays that end on each surface.
Sight to_sight(std::span<const uint32_t> rays);

}  // namespace convssm::worlds
