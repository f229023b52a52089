// Where test clips are looked at: each from its first frame on, and long ones at later windows too, until there are as many
// as asked for. A recording of an hour in one file is not one sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convssm/data/dataset.h"

namespace convssm::evaluate {

struct Window {
  uint64_t clip = 0;
  int64_t first = 0;  // frame
  bool operator==(const Window&) const = default;
};

// At most `samples` windows of `frames` frames of the test clips: the beginnings of the clips in their order, then of what is
// left, evenly chosen, windows that begin every `stride` frames (0: where the one before ends).
std::vector<Window> test_windows(const data::Dataset& dataset, int64_t frames, int64_t stride, int64_t samples);

// `frames` frames from where each begins, as a batch.
data::Clips read_windows(const data::Dataset& dataset, std::span<const Window> windows, int64_t frames);

// How many different clips they are of.
int64_t clips_of(const std::vector<Window>& windows);

}  // namespace convssm::evaluate
