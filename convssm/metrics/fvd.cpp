// Clips that do not fill a chunk are left out of the chunked score, since a smaller chunk has a larger bias; the score
// of all clips at once is given beside it. Features are taken clip by clip: a batch would only cost memory.
#include "convssm/metrics/fvd.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "convssm/metrics/frechet.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {

at::Tensor fvd_features(const I3d& net, const at::Tensor& clips) {
  ops::require_dims("fvd_i3d", "clips", clips, 5, "[N,T,C,H,W]");
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < clips.size(0); ++i) rows.push_back(net.logits(clips[i]));
  return at::stack(rows);
}

FvdScore fvd_i3d(const at::Tensor& real, const at::Tensor& fake, int64_t chunk) {
  ops::require_dims("fvd_i3d", "real", real, 2, "[N,F]");
  ops::require_shape("fvd_i3d", "fake", fake, real.sizes());
  ops::require("fvd_i3d", chunk >= 2, "the chunk must be at least 2 clips, got {}", chunk);
  const int64_t clips = real.size(0);
  ops::require("fvd_i3d", clips >= 2, "there must be at least 2 clips for a covariance, got {}", clips);

  FvdScore score;
  score.clips = clips;
  score.chunk = std::min(chunk, clips);
  score.chunks = clips / score.chunk;
  score.left_over = clips % score.chunk;
  score.all = frechet_distance(real, fake);
  double sum = 0, squares = 0;
  std::vector<double> distances(static_cast<size_t>(score.chunks), score.all);
  for (int64_t i = 0; i < score.chunks; ++i) {
    double& distance = distances[static_cast<size_t>(i)];
    if (score.chunk < clips) {
      distance =
          frechet_distance(real.narrow(0, i * score.chunk, score.chunk), fake.narrow(0, i * score.chunk, score.chunk));
    }
    sum += distance;
  }
  score.mean = sum / static_cast<double>(score.chunks);
  for (const double distance : distances) squares += (distance - score.mean) * (distance - score.mean);
  score.deviation = std::sqrt(squares / static_cast<double>(score.chunks));
  return score;
}

}  // namespace convssm::metrics
