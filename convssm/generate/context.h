// The recording that a forecast goes on from, read from a file as people have it.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "convssm/data/dataset.h"

namespace convssm::generate {

struct Context {
  at::Tensor video;         // [N,K,C,H,W] in [-1,1]
  at::Tensor actions;       // [N,T] int64 with T of any length, undefined if the file has none
  std::string description;  // what was found and how it was read
};

struct ContextOptions {
  std::string key = {};     // of the array in an .npz file; empty: `data`, `video` or the only one
  std::string layout = {};  // "THWC", ...; empty: guessed
  int64_t frames = 0;       // only the first ones; 0: all
  int64_t clip = -1;        // only this one of several; -1: all
};

// .npy, .npz (one clip or several), .gif or .mp4. Error(data) if the frames are not those of the model.
Context read_context(const std::string& path, const data::FrameFormat& format, const ContextOptions& options);

}  // namespace convssm::generate
