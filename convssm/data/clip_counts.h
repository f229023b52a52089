// How many different clips there are in each split of a dataset that makes its clips itself.
#pragma once

#include <cstdint>
#include <string>

#include "convssm/data/dataset.h"

namespace convssm {
class OptionReader;
}

namespace convssm::data {

struct ClipCounts {
  uint64_t clips = 0, valid_clips = 0, test_clips = 0;  // 0: as many as one asks for

  void read_options(OptionReader& read);  // of these names
  uint64_t of(Split split) const;         // or any_count
  std::string text() const;               // "9 training, 2 validation and 3 test clips of any length"
};

}  // namespace convssm::data
