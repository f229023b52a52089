// The recording that a forecast goes on from, read from a file as people have it.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "convssm/data/dataset.h"

namespace convssm::generate {

struct Context {
  data::Clips clips;        // video [N,K,C,H,W], and the actions that led to its frames
  at::Tensor actions;       // all of the file, [N,T] int64 or [N,T,A] float32 with any T; undefined if it has none
  std::string description;  // what was found and how it was read
};

struct ContextOptions {
  std::string key = {};     // of the array in an .npz file; empty: `data`, `video` or the only one
  std::string layout = {};  // "THWC", ...; empty: guessed
  int64_t frames = 0;       // only the first ones; 0: all
  int64_t clip = -1;        // only this one of several; -1: all
};

// .npy, .npz (one clip or several), .gif, .mp4 or .png. Error(data) if the frames are not those of the model.
Context read_context(const std::string& path, const data::FrameFormat& format, const ContextOptions& options);

}  // namespace convssm::generate
