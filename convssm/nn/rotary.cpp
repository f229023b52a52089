// Angles in double: a long sequence has large ones, and only their differences count.
#include "convssm/nn/rotary.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/ops/check.h"

namespace convssm::nn {

at::Tensor grid_angles(int64_t frames, int64_t rows, int64_t columns, int64_t size, const at::TensorOptions& options) {
  ops::require("rotary", size % 2 == 0 && size >= 6, "heads must have an even number of features, at least 6, got {}",
               size);
  const auto exact = options.dtype(at::kDouble);
  const auto along = [&](int64_t count) { return at::arange(count, exact); };
  const std::vector<at::Tensor> places = at::meshgrid({along(frames), along(rows), along(columns)}, "ij");
  std::vector<at::Tensor> angles;
  for (int64_t i = 0; i < size / 2; ++i) {
    const int64_t axis = i % 3, pairs = (size / 2 + 2 - axis) / 3;
    const double frequency = std::pow(100.0, -static_cast<double>(i / 3) / static_cast<double>(pairs));
    angles.push_back(places[static_cast<size_t>(axis)].flatten() * frequency);
  }
  return at::stack(angles, 1);
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& angles) {
  const auto halves = x.chunk(2, -1);
  const at::Tensor c = angles.cos().to(x.scalar_type()), s = angles.sin().to(x.scalar_type());
  return at::cat({halves[0] * c - halves[1] * s, halves[0] * s + halves[1] * c}, -1);
}

at::Tensor line_angles(const at::Tensor& positions, int64_t pairs, double wavelength) {
  at::Tensor rates = at::empty({pairs}, at::kDouble);
  for (int64_t k = 0; k < pairs; ++k) {
    const double share = pairs > 1 ? static_cast<double>(k) / static_cast<double>(pairs - 1) : 0;
    rates.data_ptr<double>()[k] = 1 / std::pow(wavelength, share);
  }
  return positions.to(at::kDouble).unsqueeze(1) * rates.to(positions.device());
}

at::Tensor rotate_neighbours(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines) {
  const int64_t size = x.size(-1), turned = 2 * cosines.size(-1);
  const at::Tensor pairs = x.narrow(-1, 0, turned).unflatten(-1, {turned / 2, 2});
  const at::Tensor even = pairs.select(-1, 0), odd = pairs.select(-1, 1);
  const at::Tensor y = at::stack({even * cosines - odd * sines, odd * cosines + even * sines}, -1).flatten(-2);
  return turned == size ? y : at::cat({y, x.narrow(-1, turned, size - turned)}, -1);
}

}  // namespace convssm::nn
