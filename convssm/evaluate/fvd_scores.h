// FVD of several forecasters over several horizons: the I3D logits of whole clips, context included, gathered clip by
// clip. A horizon has its own features, because the network sees where a clip ends.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "convssm/metrics/i3d.h"

namespace convssm::evaluate {

class FvdScores {
 public:
  // `lengths`: frames of the clips of each horizon, those of the context included. `i3d` must outlive it. Error(usage)
  // for chunks of less than two clips, which have no covariance.
  FvdScores(const metrics::I3d& i3d, std::vector<int64_t> lengths, size_t forecasters, int64_t chunk = 256);

  // One clip: truth and each forecast [T,C,H,W] float32 in [0,1], T at least the longest length.
  void add(const at::Tensor& truth, const std::vector<at::Tensor>& forecasts);

  // {"mean", "std": over the chunks if there are several, "all": of all clips at once, "chunks"}; null for fewer than two clips.
  nlohmann::json value(size_t horizon, size_t forecaster) const;

 private:
  struct Features {
    std::vector<at::Tensor> truth;
    std::vector<std::vector<at::Tensor>> forecasts;
  };

  const metrics::I3d* i3d_;
  std::vector<int64_t> lengths_;
  int64_t chunk_;
  std::vector<Features> features_;  // per horizon
};

}  // namespace convssm::evaluate
