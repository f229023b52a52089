// Where generated frames go, one at a time and in constant memory. The ending of the path says how:
//   .npy, .npz (key `video`)  [T,H,W,C] or another layout: bytes if the values of the data are 0 to 255, else float32 in its units
//   .gif, .mp4                to look at
//   .png                      a strip of evenly spaced frames
//   .nc, .zarr                fields with coordinates and times (grid_sink.h)
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "convssm/data/dataset.h"
#include "convssm/data/field_writer.h"

namespace convssm::generate {

struct SinkOptions {
  int64_t frames = 0;  // that will come
  double fps = 10;
  int64_t scale = 1;            // enlargement of gif, mp4 and png
  std::string layout = "THWC";  // of arrays; "TCHW", or "THW" for one channel
  data::FieldPlace field = {};  // of .nc and .zarr; arrays of floats have NaN too where nothing was measured
};

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  virtual void write(const at::Tensor& frame) = 0;  // [C,H,W] in [-1,1]; NaN: not known, grey where there is no NaN

  // Completes the file; before that there is none. If frames are missing, with those that came.
  virtual void close() = 0;
};

std::unique_ptr<FrameSink> open_sink(const std::string& path, const data::FrameFormat& format,
                                     const SinkOptions& options);

// What open_sink makes, for people: "u8 [T,H,W,C]"; "" unless it is an array.
std::string array_text(const std::string& path, const data::FrameFormat& format, const SinkOptions& options);

// future.npy -> future-3.npy
std::string numbered_path(const std::string& path, int64_t number);

}  // namespace convssm::generate
