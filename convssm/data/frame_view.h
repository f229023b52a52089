// How frames of files are looked at: every k-th of them, the middle, another size, grey or in colour. Of all kinds of
// recordings alike (viewed_recording.h).
#pragma once

#include <cstdint>
#include <string>

#include "convssm/io/array.h"

namespace convssm {
class OptionReader;
}

namespace convssm::data {

enum class Colour { keep, grey, rgb };
enum class Resize {
  area,     // each pixel is the mean of the area that it covers
  bilinear  // between the four nearest, centres of pixels at halves: for enlarging
};
enum class StrideActions {
  last,  // the action that led to the frame
  sum    // of all numbers since the frame before
};

struct FrameView {
  int64_t stride = 1;  // every k-th frame
  StrideActions stride_actions = StrideActions::last;
  int64_t height = 0, width = 0;  // `size`; 0: as it is
  bool crop_center = false;       // the largest part in the middle that has the proportions of that size
  Resize resize = Resize::area;
  Colour colour = Colour::keep;

  bool changes_size() const { return height > 0; }
  bool changes_frames() const { return changes_size() || colour != Colour::keep; }
  bool changes() const { return stride != 1 || changes_frames(); }

  void read_options(OptionReader& read);
  void check() const;  // Error(usage)
};

// The size of frames of such a view.
struct FrameSize {
  int64_t channels, height, width;
};

// Error(data) that names the file for colours of frames that have neither 1 nor 3 channels.
FrameSize size_in_view(const FrameView& view, const FrameSize& frame, const std::string& file);

// Frames [T,C,H,W] of real numbers as the view has them; the type stays, but for 16-bit floats, which become f32. Whole
// numbers are rounded.
io::Array frames_in_view(const FrameView& view, const io::Array& frames, const std::string& file);

// The type of frames_in_view.
io::DType dtype_in_view(const FrameView& view, io::DType dtype);

}  // namespace convssm::data
