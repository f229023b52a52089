// How the paper turns a metric of many frames into "mean +- deviation": the mean over the generated frames of a sample,
// over the samples of a chunk of 256, then mean and population standard deviation over the chunks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convssm::metrics {

struct ChunkedMean {
  double mean = 0;
  double deviation = 0;  // between chunks, not between samples; 0 for one chunk
  int64_t samples = 0, chunks = 0;
};

// values [samples, frames], finite (see cap_psnr). A last chunk of fewer samples counts by its size, so that the mean is
// always the mean over samples; with whole chunks these are the paper's numbers.
ChunkedMean chunked_mean(const at::Tensor& values, int64_t chunk = 256);

}  // namespace convssm::metrics
