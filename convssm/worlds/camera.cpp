#include "convssm/worlds/camera.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "convssm/base/error.h"

namespace convssm::worlds {

Camera::Camera(const View& view, int heading, std::span<const uint8_t> rgb)
    : columns_(view.width * view.samples),
      rows_(view.height * view.samples),
      focal_(0.5 * static_cast<double>(columns_) / std::tan(view.fov * std::numbers::pi / 360)),
      cos_(cosine(heading)),
      sin_(sine(heading)) {
  if (static_cast<int64_t>(rgb.size()) == view.bytes()) return;
  fail(ErrorKind::usage, "[world] a frame of {} x {} pixels has {} bytes, got {}", view.width, view.height,
       view.bytes(), rgb.size());
}

void ColumnBuffer::next_column() {
  if (++column_ % view_.samples != 0) return;
  const auto rays = static_cast<uint32_t>(view_.samples * view_.samples);
  uint8_t* pixel = rgb_.data() + 3 * (column_ / view_.samples - 1);
  for (int64_t row = 0; row < view_.height; ++row, pixel += 3 * view_.width) {
    for (int64_t c = 0; c < 3; ++c) pixel[c] = static_cast<uint8_t>(sums_[static_cast<size_t>(3 * row + c)] / rays);
  }
  std::ranges::fill(sums_, 0);
}

Sight to_sight(std::span<const uint32_t> rays) {
  Sight sight;
  for (size_t id = 0; id < rays.size(); ++id) {
    if (rays[id] > 0) sight.push_back({static_cast<uint32_t>(id), rays[id]});
  }
  return sight;
}

}  // namespace convssm::worlds
