// Writes IDX files of square u8 images for the tests.
#pragma once

#include <functional>
#include <string>

namespace convssm::data {

inline std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// `count` images of size x size; pixel(image, row, column).
inline std::string idx_images(uint32_t count, uint32_t size, const std::function<int(int, int, int)>& pixel) {
  std::string bytes = std::string("\0\0\x08\x03", 4) + big_endian(count) + big_endian(size) + big_endian(size);
  for (int image = 0; image < static_cast<int>(count); ++image) {
    for (int i = 0; i < static_cast<int>(size * size); ++i) {
      bytes += static_cast<char>(pixel(image, i / static_cast<int>(size), i % static_cast<int>(size)));
    }
  }
  return bytes;
}

inline std::string idx_labels(uint32_t count, const std::function<int(int)>& label) {
  std::string bytes = std::string("\0\0\x08\x01", 4) + big_endian(count);
  for (int image = 0; image < static_cast<int>(count); ++image) bytes += static_cast<char>(label(image));
  return bytes;
}

}  // namespace convssm::data
