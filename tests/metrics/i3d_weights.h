// Weights of I3D for tests: a hash of tensor name and element number, as in tools/golden/make_i3d.py.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "convssm/io/safetensors.h"
#include "convssm/metrics/i3d_layout.h"

namespace convssm::testing {

// The usual CRC-32 (zlib, PNG).
inline uint32_t crc32(const std::string& text) {
  uint32_t crc = ~0u;
  for (const unsigned char byte : text) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

// In [0,1).
inline double hashed(uint32_t seed, uint32_t index) {
  uint32_t h = index * 0x9E3779B9u + seed;
  h = (h ^ h >> 16) * 0x7FEB352Du;
  h = (h ^ h >> 15) * 0x846CA68Bu;
  h ^= h >> 16;
  return (h >> 8) / 16777216.0;
}

inline io::Array made_up_weight(const std::string& name, const std::vector<int64_t>& shape) {
  io::Array array(io::DType::f32, shape);
  const bool kernel = name.ends_with("/w"), variance = name.ends_with("moving_variance");
  const double fan = kernel ? static_cast<double>(shape[0] * shape[1] * shape[2] * shape[3]) : 1;
  const double size = std::sqrt(6 / fan);
  const uint32_t seed = crc32(name);
  uint32_t index = 0;
  for (float& value : array.values<float>()) {
    const double u = hashed(seed, index++);
    value = static_cast<float>(kernel ? (2 * u - 1) * size : variance ? 0.5 + u : 0.4 * u - 0.2);
  }
  return array;
}

inline std::vector<io::NamedArray> made_up_i3d() {
  std::vector<io::NamedArray> out;
  for (const auto& [name, shape] : metrics::i3d_tensors()) out.push_back({name, made_up_weight(name, shape)});
  return out;
}

}  // namespace convssm::testing
