// Where the rows of a batch are while training walks along recordings, window after window (train.carry_state): a pure function
// of (seed, step), found without walking.
// A window begins with the frame that the one before it ended with, as that was predicted and has not been seen. All windows
// of all recordings, in another order of the recordings in each pass over the data, are one line; each row walks an equal
// stretch of it. What is left of a recording after its last whole window is before its first one by chance, so that in other
// passes other frames are left out, fewer than a window. A row begins anew where its stretch or a recording begins.
//   Walk walk(dataset, Split::train, seed, batch, frames);   Walk::Place at = walk.place(step, row);
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "convssm/data/dataset.h"

namespace convssm::data {

class Walk {
 public:
  struct Place {
    uint64_t clip = 0;
    int64_t first = 0;    // frame of the clip
    bool begins = false;  // nothing that the row has seen is before it
  };

  // Error(usage) unless windows have two frames, and clips an end.
  Walk(const Dataset& dataset, Split split, uint64_t seed, int64_t batch, int64_t frames);

  // Called from several threads at once.
  Place place(uint64_t step, int64_t row) const;

  uint64_t windows() const { return windows_; }  // of a pass over the data
  uint64_t steps() const { return steps_; }      // of a pass: windows that a row walks in one go

 private:
  struct Pass {
    uint64_t number = 0;
    std::vector<uint64_t> clips;   // in order
    std::vector<uint64_t> before;  // windows before each
  };
  std::shared_ptr<const Pass> pass(uint64_t number) const;

  uint64_t seed_;
  int64_t fresh_;                 // frames of a window that are new
  std::vector<int64_t> lengths_;  // of the clips
  uint64_t windows_ = 0, steps_ = 0;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Pass> newest_;
};

}  // namespace convssm::data
