// Clips of codes in files: whole numbers [T,h,w] below the size of the codebook, as data/write_codes.h writes them and as
// datasets have them that were encoded elsewhere.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "convssm/data/dataset.h"
#include "convssm/data/recording.h"

namespace convssm::data {

// Whether a recording holds codes.
bool are_codes(const RecordingInfo& info);

// Of all files: as large as `wanted`, or as the arrays `codebook_size` beside the codes say, or else as the largest code
// that is there; `reason` tells which. Error(data) if a file holds no codes, or files disagree.
CodeFormat find_codes(const std::vector<RecordingInfo>& files, int64_t wanted, std::string& reason);

// Looks through the codes of all files, if that takes seconds; of more, clips are checked when they are read. Errors as of
// read_codes.
void check_codes(const std::vector<RecordingInfo>& files, int64_t count);

// [T,h,w] int64. Error(data) that names file, place and value for a number that is not one of `count` codes.
at::Tensor read_codes(Recording& recording, int64_t clip, int64_t first, int64_t frames, int64_t count);

}  // namespace convssm::data
