// From numbers as files hold them to pixels in [-1,1].
#pragma once

#include <cstdint>
#include <string>

#include "convssm/data/clip_file.h"
#include "convssm/io/array.h"

namespace convssm::data {

struct PixelRange {
  double low = 0, high = 255;  // become -1 and 1
  bool clamp = false;          // values outside are brought to the nearer end; otherwise they are an error
};

// Frames `first_frame` .. of clip `row` of the file, `part` their elements as they are stored, to out [T,C,H,W].
// Error(data) that names file, place and value for a pixel that is not a finite number, or outside the range.
void to_pixels(const ClipFile& file, int64_t row, int64_t first_frame, const io::Array& part, const PixelRange& range,
               float* out);

struct Extremes {
  double low = 0, high = 0;  // of the finite values; 0 and 0 if there are none
  uint64_t nan = 0, infinite = 0, values = 0;

  void add(const Extremes& other);
};

Extremes extremes(const io::Array& array);

}  // namespace convssm::data
