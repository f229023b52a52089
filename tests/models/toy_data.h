// Clips of noise, a function of (split, index): for toys that need some data.
#pragma once

#include <string>
#include <vector>

#include "convssm/base/random.h"
#include "convssm/data/dataset.h"

namespace convssm::testing {

class NoiseClips : public data::Dataset {
 public:
  data::Clips clip(data::Split split, uint64_t index, int64_t frames) const override {
    Stream stream(1, data::name(split), index % 50);
    at::Tensor video = at::empty({1, frames, 1, 4, 4}, at::kFloat);
    for (int64_t i = 0; i < video.numel(); ++i) {
      video.data_ptr<float>()[i] = static_cast<float>(stream.uniform(-1, 1));
    }
    return {video};
  }
  uint64_t size(data::Split) const override { return 50; }
  int64_t longest(data::Split) const override { return data::any_length; }
  data::FrameFormat format() const override { return {1, 4, 4}; }
  std::vector<std::string> summary() const override { return {"noise"}; }
};

}  // namespace convssm::testing
