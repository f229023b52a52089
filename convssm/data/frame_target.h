// What conversions write frames to: a file of one kind, a part of the frames at a time, in the memory of a part.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convssm/data/recording.h"

namespace convssm::data {

// Which clip, and how: its frames first .. first + frames - 1.
struct TargetOptions {
  std::string path = {};
  int64_t clip = 0, first = 0, frames = 0;
  double fps = 10;
  int zarr_version = 2;
  double black = 0, white = 255;  // the values that are these in pictures
};

// Nothing is at the path before close(); without it there never is.
class FrameTarget {
 public:
  virtual ~FrameTarget() = default;
  virtual void write(const io::Array& frames) = 0;  // the next ones, [T,C,H,W] in their stored type
  virtual void close(int64_t frames) = 0;           // so many came; fewer than announced are no error but of .npz
};

// Error(usage) that lists the endings for a path of another one.
std::unique_ptr<FrameTarget> open_frame_target(Recording& recording, const TargetOptions& options);

// Whether a result of this name is to be looked at, bytes from black to white.
bool is_picture_target(const std::string& path);

// ".npy, .npz, .nc, ..., or a name that ends with / for a folder of .png frames"
std::string target_endings();

}  // namespace convssm::data
