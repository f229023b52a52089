// PNG images, grey or RGB, for samples, reports and image datasets: written with 8 bits per sample, read with 8 or 16.
//   write_png("frame.png", {width, height, 3, pixels});
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

struct Image {
  int64_t width = 0;
  int64_t height = 0;
  int64_t channels = 1;         // 1 grey, 3 RGB
  std::vector<uint8_t> pixels;  // [height, width, channels]
};

// Writes the file whole or not at all. Error(usage) if the pixels do not fit the size.
void write_png(const std::string& path, const Image& image);

// The bytes of the file that write_png writes, for embedding.
std::string encode_png(const Image& image);

// Palettes become RGB, 16 bits become 8, fewer bits are scaled up, transparency is dropped. FormatError for anything
// that is not a complete image of at most 2^15 x 2^15 pixels.
Image read_png(const std::string& path);
Image read_png(std::shared_ptr<const Source> source);

// The same with 16 bits kept: [H,W,1 or 3] of u8 or u16.
Array read_png_samples(std::shared_ptr<const Source> source);

}  // namespace convssm::io
