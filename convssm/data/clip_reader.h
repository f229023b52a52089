// The clips of files, one after the other, in the memory of one: samples of any project, to be scored.
//   ClipReader clips("samples.npz", {.key = "fake"});   for (int64_t i = 0; i < clips.clips(); ++i) clips.next();
// A file holds arrays (one clip or several), is a video (one clip) or a picture (a clip of one frame); a folder is all
// such files in it, sorted by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "convssm/data/recording.h"

namespace convssm::data {

struct ClipReaderOptions {
  std::string key = {};     // of the array in .npz files; empty: `data`, `video` or the only one
  std::string layout = {};  // "THWC", ...; empty: guessed
  double low = NAN;         // the values that become 0 and 1; by default bytes are 0 to 255 and floats are 0 to 1
  double high = NAN;
};

class ClipReader {
 public:
  // Error(io), Error(data) or FormatError that names the file.
  ClipReader(const std::string& path, const ClipReaderOptions& options);

  int64_t clips() const { return clips_; }
  const RecordingInfo& shape() const { return first_; }  // frames, channels, height, width: the same of all clips
  bool bytes() const { return bytes_; }                  // clips are uint8, otherwise float32 in [0,1]
  bool is_folder() const;
  const std::vector<std::string>& files() const { return names_; }
  const std::vector<int64_t>& clips_of_files() const { return counts_; }

  // The next clip [T,C,H,W]. Error(data) for a clip of another size, and for values outside [0,1].
  at::Tensor next();

 private:
  void open(size_t index);
  at::Tensor read_clip();

  std::string path_;
  ClipReaderOptions options_;
  std::vector<std::string> names_;  // of the files, relative to the folder
  std::vector<int64_t> counts_;     // clips of each
  RecordingInfo first_;
  int64_t clips_ = 0;
  bool bytes_ = false;

  size_t index_ = 0;  // of the file being read
  int64_t row_ = 0;
  std::unique_ptr<Recording> recording_;
};

}  // namespace convssm::data
