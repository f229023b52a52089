// A recording: one file of clips, or a folder of the frames of one, whatever its kind. What it holds is known when it is
// open; frames and actions of its clips are read when they are asked for.
//   auto recording = open_recording("samples.npz", {.key = "fake"});
//   io::Array frames = recording->read(clip, first, count);   // [T,C,H,W]
// A new kind of file is a class below Recording in a file pair of its own and a line in recording_files.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convssm/data/actions.h"
#include "convssm/data/array_cache.h"
#include "convssm/data/axes.h"
#include "convssm/data/clip_layout.h"
#include "convssm/data/field_choice.h"
#include "convssm/data/frame_format.h"
#include "convssm/data/frame_view.h"
#include "convssm/io/array.h"

namespace convssm::data {

struct PixelRanges;

// What arrays of clips are.
enum class Content {
  found,  // codes if the key is `codes`, otherwise frames
  video,
  codes  // of a tokenizer: Clips.codes instead of a video
};

// Whether NaN is a pixel that was not measured, or a mistake.
enum class Missing {
  found,  // not measured if a grid file says which values are none, or has NaN in its first, middle or last frame; else a mistake
  mask,   // not measured
  refuse  // a mistake
};

enum class Access {
  random,   // any chunk at any time, from several threads at once
  in_order  // from the first frame to the last, chunks may be left out; in the memory of what is asked for
};

struct RecordingOptions {
  std::string key = {};  // of the array in an .npz or HDF5 file; "": `data`, `video`, ..., then the only array of clips
  std::string layout = {};  // of arrays; "": guessed
  Content content = Content::found;
  Access access = Access::random;
  bool actions = true;                     // false: they do not matter, whatever they are
  bool actions_required = false;           // Error(data) if there are none
  std::string actions_key = {};            // of their array, if it is there; "": `actions`
  ActionReading action_reading = {};       // what they are
  FrameView view = {};                     // which frames, and of which size
  FieldChoice fields = {};                 // of grid files: which variables
  std::string from = {}, until = {};       // of grid files: "2020-10-31 02:00", only frames of these times; "": all
  std::vector<std::string> forcings = {};  // of grid files: what is known in advance (forcings.h), as actions
  Missing missing = Missing::found;
  std::optional<double> missing_value = {};  // a number that stands for pixels that were not measured
  bool skip_errors = false;  // of a folder of grid files: those that cannot be opened are left out, with a warning
  std::string name = {};     // for the info; "": the path
  std::shared_ptr<ArrayCache> cache = {};  // where random access keeps what can only be read whole; null: its own
};

struct RecordingInfo {
  std::string path = {};
  std::string name = {};  // relative to the folder that was searched
  std::string kind = {};  // "array", "animation", "picture", ..., for people
  std::string key = {};   // of the array in an .npz or HDF5 file, otherwise ""
  io::DType dtype = io::DType::u8;
  std::vector<int64_t> shape = {};  // as it is stored; of the first of several arrays
  ClipLayout layout = {};           // of what is read
  int64_t clips = 1, channels = 1, height = 0, width = 0;
  int64_t frames = 0;                 // of each clip, of the shortest if they differ
  std::vector<int64_t> lengths = {};  // frames of each clip, if they differ
  bool has_actions = false;
  std::string actions_path = {};               // of the file that holds them
  std::string actions_key = {};                // of their array
  StoredActions stored_actions = {};           // how they are stored
  std::vector<std::string> like_actions = {};  // arrays that could be actions, if none are read
  int64_t action_values = 0;                   // numbers of an action; 0: it is one whole number
  int64_t action_maps = 0;                     // maps of an action; 0: it has none
  bool foresees_actions = false;               // those of frames beyond the end are known too
  bool sequential = false;                     // a frame is decoded from those before it
  bool always_bytes = false;                   // a video or picture of bytes: 0 to 255, whatever the units of the data
  std::vector<Channel> named_channels = {};    // names and units, if the file says them; else empty
  Axes axes = {};                              // where pixels and when frames are, if the file says it
  bool may_miss = false;                       // NaN is a pixel that was not measured
  bool in_time_order = false;                  // clips are pieces of one recording, one after the other
  std::vector<std::string> notes = {};         // what was found, for people
  RecordingOptions reading = {};               // that it was opened with, without the cache: to open it once more

  uint64_t frame_elements() const { return static_cast<uint64_t>(channels * height * width); }
  int64_t length(int64_t clip) const { return lengths.empty() ? frames : lengths[static_cast<size_t>(clip)]; }
  int64_t longest() const { return lengths.empty() ? frames : *std::ranges::max_element(lengths); }
  int64_t all_frames() const;  // of all clips
};

class Recording {
 public:
  virtual ~Recording() = default;

  const RecordingInfo& info() const { return info_; }

  // Frames first .. first+count-1 of a clip, [T,C,H,W] in their stored type.
  io::Array read(int64_t clip, int64_t first, int64_t count);

  // The same in [-1,1], to out [T,C,H,W], and with `valid` which of them were measured (pixels.h). Error(data) that names file,
  // place and value for a pixel that is not a finite number or outside of its range.
  void read_pixels(int64_t clip, int64_t first, int64_t count, const PixelRanges& ranges, float* out,
                   bool* valid = nullptr);

  // The actions that led to the same frames, [T] int64, [T,A] or [T,M,H,W] float32. Undefined if there are none. Error(data)
  // that names the file if one is infinite. Where info().foresees_actions, frames may lie beyond the end.
  at::Tensor read_actions(int64_t clip, int64_t first, int64_t count);

  // When the same frames were taken, or will be beyond the end, in seconds since 1970-01-01 of the calendar of info().axes; empty: nobody knows.
  std::vector<double> read_times(int64_t clip, int64_t first, int64_t count) const;

  // Steps since the frame before, in units of the usual one; empty if all are even.
  std::vector<double> read_intervals(int64_t clip, int64_t first, int64_t count) const;

 protected:
  // No cache: one that keeps nothing.
  Recording(RecordingInfo info, std::shared_ptr<ArrayCache> cache);

  // Frames of a clip: [T,H,W,C] if channels_last(info().layout), otherwise [T,C,H,W].
  virtual io::Array frames(int64_t clip, int64_t first, int64_t count) = 0;

  // By default those of the file that the info names, of which `action_place` says where those of the clip begin.
  virtual at::Tensor actions(int64_t clip, int64_t first, int64_t count);
  virtual ActionPlace action_place(int64_t clip) const;

  virtual std::vector<double> frame_times(int64_t, int64_t, int64_t) const { return {}; }
  virtual std::vector<double> frame_intervals(int64_t, int64_t, int64_t) const { return {}; }

  ArrayCache& cache() const { return *cache_; }

 private:
  void check_place(int64_t clip, int64_t first, int64_t count) const;

  RecordingInfo info_;
  std::shared_ptr<ArrayCache> cache_;
};

// Error(io), Error(data) or FormatError that names the file if it cannot be opened, does not hold clips of real numbers,
// or actions that fit them.
std::unique_ptr<Recording> open_recording(const std::string& path, const RecordingOptions& options = {});

// What every kind of recording says about itself first.
RecordingInfo begin_info(const std::string& path, const char* kind, const RecordingOptions& options);

// Frames [T,C,H,W] as [T,H,W,C], elements of any type.
io::Array with_channels_last(const io::Array& frames);

// Opens the same once more, in order and without its actions.
std::unique_ptr<Recording> reopen_in_order(const RecordingInfo& info);

// "64x64 with 1 channel"
std::string frame_text(const RecordingInfo& info);

// "none", "whole numbers" or "3 numbers per frame"
std::string actions_text(const RecordingInfo& info);

// Throws Error(data) unless both have frames of one size, and actions of one kind or none.
void check_fit(const RecordingInfo& first, const RecordingInfo& other);

}  // namespace convssm::data
