// Recordings of noise with given lengths, as a dataset of long ones has them: parts of one recording are parts.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "convssm/data/dataset.h"
#include "tests/support.h"

namespace convssm::testing {

class NoiseRecordings : public data::Dataset {
 public:
  explicit NoiseRecordings(std::vector<int64_t> lengths, int64_t side = 8)
      : lengths_(std::move(lengths)), side_(side) {}

  data::Clips whole(uint64_t index) const {
    const auto at = static_cast<size_t>(index % lengths_.size());
    return {randn({1, lengths_[at], 1, side_, side_}, 10 + at).to(at::kFloat).tanh(),
            at::arange(lengths_[at]).remainder(3).unsqueeze(0)};
  }
  data::Clips clip(data::Split, uint64_t index, int64_t frames) const override {
    return data::frames_of(whole(index), 0, frames);
  }
  data::Clips part(data::Split, uint64_t index, int64_t first, int64_t frames) const override {
    return data::frames_of(whole(index), first, first + frames);
  }
  uint64_t size(data::Split split) const override { return split == data::Split::train ? lengths_.size() : 0; }
  int64_t longest(data::Split) const override { return *std::ranges::min_element(lengths_); }
  int64_t length(data::Split, uint64_t index) const override { return lengths_[index % lengths_.size()]; }
  data::FrameFormat format() const override { return {1, side_, side_}; }
  data::ActionFormat actions() const override { return {3}; }
  std::vector<std::string> summary() const override { return {"noise"}; }

 private:
  std::vector<int64_t> lengths_;
  int64_t side_;
};

}  // namespace convssm::testing
