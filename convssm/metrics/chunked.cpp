// The last chunk may be smaller; chunks are weighted by their samples, so that the mean is the mean of all samples
// whatever the chunk. NaN and infinity are refused: one of them would become the mean silently.
#include "convssm/metrics/chunked.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "convssm/ops/check.h"

namespace convssm::metrics {

ChunkedMean chunked_mean(const at::Tensor& values, int64_t chunk) {
  ops::require_dims("chunked_mean", "values", values, 2, "[samples, frames]");
  ops::require("chunked_mean", values.is_floating_point(), "values must be floats, got {}", ops::dtype_text(values));
  ops::require("chunked_mean", chunk > 0, "the chunk must be at least 1 sample, got {}", chunk);
  if (!at::isfinite(values).all().item<bool>()) {
    fail(ErrorKind::numeric,
         "[chunked_mean] values hold NaN or infinity; identical frames have an infinite PSNR: "
         "replace them with cap_psnr first");
  }
  const at::Tensor per_sample = values.detach().to(at::kDouble).mean(1);
  const int64_t samples = per_sample.numel();
  ChunkedMean out{per_sample.mean().item<double>(), 0, samples, (samples + chunk - 1) / chunk};
  double variance = 0;
  for (int64_t begin = 0; begin < samples; begin += chunk) {
    const int64_t size = std::min(chunk, samples - begin);
    const double distance = per_sample.narrow(0, begin, size).mean().item<double>() - out.mean;
    variance += static_cast<double>(size) / static_cast<double>(samples) * distance * distance;
  }
  out.deviation = std::sqrt(variance);
  return out;
}

}  // namespace convssm::metrics
