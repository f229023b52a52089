// A recording: one file of clips, whatever its kind. What it holds is known when it is open; frames and actions of its
// clips are read when they are asked for.
//   auto recording = open_recording("samples.npz", {.key = "fake"});
//   io::Array frames = recording->read(clip, first, count);   // [T,C,H,W]
// A new kind of file is a class below Recording in a file pair of its own and a line in recording_files.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convssm/data/array_cache.h"
#include "convssm/data/clip_layout.h"
#include "convssm/io/array.h"

namespace convssm::data {

struct PixelRanges;

struct RecordingInfo {
  std::string path = {};
  std::string name = {};  // relative to the folder that was searched
  std::string kind = {};  // "array", "animation" or "picture", for people
  std::string key = {};   // of the array in an .npz file, otherwise ""
  io::DType dtype = io::DType::u8;
  std::vector<int64_t> shape = {};                                     // as it is stored
  ClipLayout layout = {};                                              // of the shape
  int64_t clips = 1, frames = 0, channels = 1, height = 0, width = 0;  // `frames` of each clip
  bool has_actions = false;
  std::string actions_key = {};                // of their array
  std::vector<std::string> like_actions = {};  // arrays that could be actions, if none are read
  int64_t action_values = 0;                   // numbers of an action; 0: it is one whole number
  bool always_bytes = false;  // of this kind of file: its values are 0 to 255, whatever the units of the data

  uint64_t frame_elements() const { return static_cast<uint64_t>(channels * height * width); }
};

enum class Access {
  random,   // any chunk at any time, from several threads at once
  in_order  // from the first frame to the last, chunks may be left out; in the memory of what is asked for
};

struct RecordingOptions {
  std::string key = {};     // of the array in an .npz file; "": `data`, then `video`, then the only array of clips
  std::string layout = {};  // of arrays; "": guessed
  Access access = Access::random;
  bool actions = true;                     // false: they do not matter, whatever they are
  std::string actions_key = {};            // of their array in an .npz file, if it is there; "": `actions`
  std::string name = {};                   // for the info; "": the path
  std::shared_ptr<ArrayCache> cache = {};  // where random access keeps what can only be read whole; null: its own
};

class Recording {
 public:
  virtual ~Recording() = default;

  const RecordingInfo& info() const { return info_; }

  // Frames first .. first+count-1 of a clip, [T,C,H,W] in their stored type.
  io::Array read(int64_t clip, int64_t first, int64_t count);

  // The same in [-1,1], to out [T,C,H,W]. Error(data) that names file, place and value for a pixel that is not a finite
  // number or outside of its range.
  void read_pixels(int64_t clip, int64_t first, int64_t count, const PixelRanges& ranges, float* out);

  // The actions of the same frames, [T] int64 or [T,A] float32, or of all clips, [N,T] or [N,T,A]. Undefined if there
  // are none.
  at::Tensor read_actions(int64_t clip, int64_t first, int64_t count);
  at::Tensor read_actions();

 protected:
  explicit Recording(RecordingInfo info) : info_(std::move(info)) {}

  // `count` frames from number `first` on, and their actions, in the order in which they lie in the file. Frames are
  // counted through all clips.
  virtual io::Array frames(int64_t first, int64_t count) = 0;
  virtual io::Array actions(int64_t first, int64_t count);

 private:
  int64_t place(int64_t clip, int64_t first, int64_t count) const;

  RecordingInfo info_;
};

// Error(io), Error(data) or FormatError that names the file if it cannot be opened, does not hold clips of real numbers,
// or actions that fit them.
std::unique_ptr<Recording> open_recording(const std::string& path, const RecordingOptions& options = {});

// "64x64 with 1 channel"
std::string frame_text(const RecordingInfo& info);

// Throws Error(data) unless both have frames of one size, and actions of one kind or none.
void check_fit(const RecordingInfo& first, const RecordingInfo& other);

}  // namespace convssm::data
