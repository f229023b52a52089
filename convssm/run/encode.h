// The codes of clips as files: what a tokenizer makes of a dataset, once, so that a model of codes trains without it in memory.
// The dataset `folder` reads them (data/write_codes.h).
#pragma once

#include <functional>

#include "convssm/data/write_clips.h"
#include "convssm/models/model.h"

namespace convssm::run {

// How many frames encode_clips will see: those of all clips that are asked for, each options.frames long (0: as long as it is).
int64_t count_encoded_frames(const data::Dataset& dataset, const data::WriteOptions& options);

// OUT/train/00/clip-000000.npz and so on, by the rules of data::write_clips, one clip at a time. Frames are read and encoded
// 64 at a time, so a long recording takes the memory of its codes. `progress` hears the frames done, those of clips
// that were there included. Returns how many clips are there in the end. Error(usage) if the model is no tokenizer.
uint64_t encode_clips(models::Model& model, const data::Dataset& dataset, const data::WriteOptions& options,
                      const std::function<void(int64_t frames)>& progress);

}  // namespace convssm::run
