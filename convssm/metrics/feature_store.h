// Features of clips, kept in a folder by the content of the clip: a network that takes seconds for each clip sees the truth, which
// many runs are compared with, once. A file for each clip, named by checksums of the network and of the clip; files of other
// networks may be in the same folder.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

namespace convssm::metrics {

class FeatureStore {
 public:
  // `folder` "": nothing is kept. `network` tells networks apart, also by their options.
  FeatureStore(std::string folder, std::string network);

  // What is kept of this clip, or `compute()` [F] float32, which is then kept. A file that is damaged is made anew.
  at::Tensor of(const at::Tensor& clip, const std::function<at::Tensor()>& compute) const;

 private:
  std::string folder_, network_;
};

}  // namespace convssm::metrics
