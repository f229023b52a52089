// Boxes are split where the squared error is largest and not by the number of pixels (median cut), so that a small
// digit on a large background keeps its colours. Colours are gathered in 32x32x32 bins first: a split then costs the
// bins, not the pixels. A frame of few colours keeps them exactly.
#include "convssm/io/palette.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace convssm::io {
namespace {

constexpr size_t max_colours = 256;

bool index_exactly(std::span<const uint8_t> rgb, IndexedFrame& out) {
  std::unordered_map<uint32_t, uint8_t> known;
  out.palette.clear();
  for (size_t i = 0; i < out.pixels.size(); ++i) {
    const uint8_t* pixel = &rgb[3 * i];
    if (i > 0 && std::equal(pixel, pixel + 3, pixel - 3)) {
      out.pixels[i] = out.pixels[i - 1];
      continue;
    }
    const uint32_t code = pixel[0] | pixel[1] << 8 | pixel[2] << 16;
    const auto [entry, added] = known.emplace(code, static_cast<uint8_t>(out.palette.size()));
    if (added) {
      if (out.palette.size() == max_colours) return false;
      out.palette.push_back({pixel[0], pixel[1], pixel[2]});
    }
    out.pixels[i] = entry->second;
  }
  return true;
}

// The pixels whose colours agree in the first 5 bits of each channel.
struct Bin {
  double count = 0;
  std::array<double, 3> sum{};
  double mean(size_t axis) const { return sum[axis] / count; }
};

size_t bin_of(const uint8_t* pixel) {
  return static_cast<size_t>(pixel[0] >> 3 << 10 | pixel[1] >> 3 << 5 | pixel[2] >> 3);
}

// Bins, the axis on which they differ most, and by how much.
struct Box {
  std::vector<uint16_t> bins;
  size_t axis = 0;
  double centre = 0;  // the mean on that axis
  double error = 0;   // the squared error on that axis
  Colour colour{};
};

Box make_box(const std::vector<Bin>& all, std::vector<uint16_t> bins) {
  Box box;
  double count = 0;
  for (const uint16_t i : bins) count += all[i].count;
  for (size_t axis = 0; axis < 3; ++axis) {
    double sum = 0, error = 0;
    for (const uint16_t i : bins) sum += all[i].sum[axis];
    const double mean = sum / count;
    for (const uint16_t i : bins) error += all[i].count * (all[i].mean(axis) - mean) * (all[i].mean(axis) - mean);
    box.colour[axis] = static_cast<uint8_t>(std::lround(mean));
    if (axis == 0 || error > box.error) box.axis = axis, box.centre = mean, box.error = error;
  }
  box.bins = std::move(bins);
  return box;
}

std::vector<Box> divide(const std::vector<Bin>& all, std::vector<uint16_t> used) {
  std::vector<Box> boxes = {make_box(all, std::move(used))};
  const auto by_error = [](const Box& a, const Box& b) { return a.error < b.error; };
  while (boxes.size() < max_colours) {
    std::ranges::pop_heap(boxes, by_error);
    Box& worst = boxes.back();
    const auto lower = [&](uint16_t i) { return all[i].mean(worst.axis) <= worst.centre; };
    const auto middle = std::partition(worst.bins.begin(), worst.bins.end(), lower);
    if (middle == worst.bins.begin() || middle == worst.bins.end()) break;  // no box has two different bins
    std::vector<uint16_t> upper(middle, worst.bins.end());
    worst.bins.resize(worst.bins.size() - upper.size());
    worst = make_box(all, std::move(worst.bins));
    std::ranges::push_heap(boxes, by_error);
    boxes.push_back(make_box(all, std::move(upper)));
    std::ranges::push_heap(boxes, by_error);
  }
  return boxes;
}

}  // namespace

void index_colours(std::span<const uint8_t> rgb, IndexedFrame& out) {
  out.pixels.resize(rgb.size() / 3);
  if (index_exactly(rgb, out)) return;
  std::vector<Bin> bins(1 << 15);
  for (size_t i = 0; i < rgb.size(); i += 3) {
    Bin& bin = bins[bin_of(&rgb[i])];
    bin.count += 1;
    for (size_t axis = 0; axis < 3; ++axis) bin.sum[axis] += rgb[i + axis];
  }
  std::vector<uint16_t> used;
  for (size_t i = 0; i < bins.size(); ++i) {
    if (bins[i].count > 0) used.push_back(static_cast<uint16_t>(i));
  }
  const std::vector<Box> boxes = divide(bins, std::move(used));
  std::vector<uint8_t> index(bins.size());
  out.palette.clear();
  for (const Box& box : boxes) {
    for (const uint16_t i : box.bins) index[i] = static_cast<uint8_t>(out.palette.size());
    out.palette.push_back(box.colour);
  }
  for (size_t i = 0; i < out.pixels.size(); ++i) out.pixels[i] = index[bin_of(&rgb[3 * i])];
}

}  // namespace convssm::io
