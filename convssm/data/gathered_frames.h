// Frames of arrays whose layout is none of the usual ones, such as TNHW or NHWTC: gathered from a box of the array.
#pragma once

#include <string>

#include "convssm/data/recording.h"

namespace convssm::data {

// Frames first .. first+count-1 of a clip, [T,C,H,W], of the array `key` of info.path, laid out as info.layout says. `opened` as of
// ArrayCache::read.
io::Array gathered_frames(ArrayCache& cache, const RecordingInfo& info, const std::string& key, int64_t clip,
                          int64_t first, int64_t count, const io::ArrayInfo* opened = nullptr);

}  // namespace convssm::data
