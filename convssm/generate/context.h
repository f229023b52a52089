// The recording that a forecast goes on from, read from a file as people have it.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "convssm/data/dataset.h"
#include "convssm/data/field_writer.h"
#include "convssm/data/recording.h"

namespace convssm::generate {

struct Context {
  data::Clips clips;   // video [N,K,C,H,W], and the actions that led to its frames
  at::Tensor coming;   // what is known of the actions after them, [N,T] int64 or [N,T,A] float32; undefined: nothing
  std::string layout;  // of a clip in its file: "THWC", "TCHW" or "THW"
  std::string description;                // what was found and how it was read
  std::vector<std::string> like_actions;  // arrays that could be the actions, if it has none
  std::vector<data::FieldPlace>
      places;  // of each clip: where its pixels are, its times and those of the frames after it
};

struct ContextOptions {
  std::string key = {};                     // of the array in an .npz file; empty: `data`, `video` or the only one
  std::string actions_key = {};             // of its actions, if it is there; empty: `actions`
  std::string layout = {};                  // "THWC", ...; empty: guessed
  data::ActionReading action_reading = {};  // what its actions are
  data::FrameView view = {};                // as the model's own data was looked at; frames are counted in it
  data::FieldChoice fields = {};            // of grid files, and what is known of them in advance
  std::vector<std::string> forcings = {};
  std::vector<std::string> channels = {};  // data.channels, names in place of the file's; empty: those of the file
  data::Missing missing = data::Missing::found;
  std::optional<double> missing_value = {};
  bool intervals = false;  // say how far apart its frames are, where that is not even
  int64_t ahead = 0;       // frames after it whose times and forcings are wanted, where they can be known
  int64_t first = 0;       // frame that the context begins with; below 0: counted from the end
  int64_t frames = 0;      // so many from there on, or below 0 the last ones; 0: all
  int64_t clip = -1;       // only this one of several; -1: all, of pieces of one recording the last
  bool clamp = false;      // values outside of the model's ranges become the nearer end, not an error
};

// Fields, arrays (one clip or several), a video or a picture, or a folder: the pictures of a folder are the frames of one
// clip, sorted by the numbers in their names; other files are clips of their own. Error(data) if the frames are not those of
// the model.
Context read_context(const std::string& path, const data::FrameFormat& format, const ContextOptions& options);

}  // namespace convssm::generate
