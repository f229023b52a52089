// From numbers as files hold them to pixels in [-1,1], each channel by its own range.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "convssm/data/frame_format.h"
#include "convssm/data/recording.h"
#include "convssm/io/array.h"

namespace convssm::data {

struct PixelRanges {
  std::vector<Channel> channels;  // of the frames, in order
  bool clamp = false;             // values outside are brought to the nearer end; otherwise they are an error
  bool open = false;              // or beyond -1 and 1: of normalizers without ends, up to kMostOpen
};

inline constexpr double kMostOpen =
    25;                              // a hundred deviations, where four are 1: what is beyond is no value but a mistake
inline constexpr float kFiller = 0;  // of pixels that were not measured (Clips::valid)

// Frames `first_frame` .. of a clip of the recording, `stored` their elements as they are stored, to out [T,C,H,W]. With `valid`,
// of the same shape, NaN is a pixel that was not measured, whose filler goes to `out`.
// Error(data) that names file, place and value for any other pixel that is not a finite number, or outside of its range.
void to_pixels(const RecordingInfo& info, int64_t clip, int64_t first_frame, const io::Array& stored,
               const PixelRanges& ranges, float* out, bool* valid = nullptr);

struct Extremes {
  double low = 0, high = 0;  // of the finite values; 0 and 0 if there are none
  uint64_t nan = 0, infinite = 0, values = 0;
  double mean = 0,
         squares = 0;  // of the finite ones, and the sum of their squared differences from it; of floats alone

  void add(const Extremes& other);
  uint64_t finite() const { return values - nan - infinite; }
  double deviation() const { return finite() > 0 ? std::sqrt(squares / static_cast<double>(finite())) : 0; }
};

// Of each channel of frames [T,C,H,W].
std::vector<Extremes> channel_extremes(const io::Array& frames);

}  // namespace convssm::data
