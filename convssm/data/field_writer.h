// Fields as NetCDF files and Zarr stores that other programs open, by the CF conventions: a variable for each channel, coordinates, times,
// members of an ensemble along the dimension `number`.
//   FieldWriter out("future.nc", format, place, 48);   for (...) out.write(moment);   out.close();
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "convssm/data/axes.h"
#include "convssm/data/frame_format.h"
#include "convssm/io/grid_writer.h"

namespace convssm::data {

// What such files say beside the numbers.
struct FieldPlace {
  Axes axes = {};
  std::vector<double> times = {};  // of every frame, in seconds since 1970-01-01; empty: they are numbered
  at::Tensor measured = {};  // [C,H,W] bool: pixels that are known; the others are missing in the file; undefined: all
  io::DType dtype = io::DType::f32;  // of the variables
  int zarr_version = 2;              // of stores: 2 or 3
};

class FieldWriter {
 public:
  // Nothing is at the path before close(). `frames` that will come; fewer are no error.
  FieldWriter(const std::string& path, const FrameFormat& format, const FieldPlace& place, int64_t frames,
              int64_t members = 1);

  // The next frame [C,H,W] of a single member, in the type that the place names.
  void write(const io::Array& frame);

  // The next moment, [C,H,W] or of several members [N,C,H,W], float32 in units.
  void write(const at::Tensor& moment);
  void close();

 private:
  void find_axes();
  std::string time_units() const;
  io::GridLayout layout() const;
  void write_coordinates();
  void write_time();

  FrameFormat format_;
  FieldPlace place_;
  int64_t frames_, members_, written_ = 0;
  std::vector<std::string> names_;
  Axis rows_, columns_;
  std::unique_ptr<io::GridWriter> writer_;
};

// Whether a file of this name is one.
bool is_field_name(const std::string& path);

}  // namespace convssm::data
