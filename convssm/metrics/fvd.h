// Frechet video distance (Unterthiner et al. 2018) as the paper reports it: the Frechet distance between the I3D
// logits of real and of generated clips, whole clips with their context frames, in chunks of 256 clips.
//   fvd_i3d(fvd_features(net, real), fvd_features(net, fake)).mean
// The distance of a small sample is too large, and the more so the smaller it is: only numbers of the same chunk size
// compare. With 400 features and 256 clips the bias is most of a good model's value.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convssm/metrics/i3d.h"

namespace convssm::metrics {

// clips [N,T,C,H,W] -> [N,400]; what I3d::logits takes, one clip at a time.
at::Tensor fvd_features(const I3d& net, const at::Tensor& clips);

struct FvdScore {
  double mean = 0;        // over the chunks: the paper's value
  double deviation = 0;   // population standard deviation between chunks: the paper's "+-"; 0 for one chunk
  double all = 0;         // all clips as one sample
  int64_t clips = 0;      // in `all`
  int64_t chunks = 0;     // in `mean`
  int64_t chunk = 0;      // clips of a chunk
  int64_t left_over = 0;  // clips behind the last whole chunk: in `all`, not in `mean`
};

// real, fake [N,F] features in the same order of clips, N at least 2. Chunk i of one is compared with chunk i of the
// other. A last chunk that is not full would have a larger distance and is left out of the mean; with N below
// `chunk` all clips are the one chunk.
FvdScore fvd_i3d(const at::Tensor& real, const at::Tensor& fake, int64_t chunk = 256);

}  // namespace convssm::metrics
