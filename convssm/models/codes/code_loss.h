// Cross-entropy of codes, and draws of them.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/base/option_reader.h"

namespace convssm::models {

// -sum_k y_k log softmax(logits)_k with the smoothed labels y = (1 - smoothing) onehot + smoothing / K. logits [N,K,h,w],
// labels [N,h,w] int64 -> [N,h,w].
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels, double smoothing);

// The same if the labels themselves were the logits, of one code: what the paper's public code adds for clips that do not
// count. 5.95 for 1024 codes and a smoothing of 0.01.
double label_entropy(int64_t count, double smoothing);

struct SamplingOptions {
  double temperature = 1;
  int64_t top_k = 0;  // only the most likely; 0: all
  double top_p = 1;   // only the most likely that together have this probability

  void read_from(OptionReader& read);
  bool draws() const { return top_k != 1; }  // otherwise always the most likely, whatever the temperature
  double* temperature_setting() { return draws() ? &temperature : nullptr; }
};

// What codes are drawn with: logits [...,K] -> [...,K] in double, 0 for codes that the options leave out.
at::Tensor code_probabilities(const at::Tensor& logits, const SamplingOptions& options);

// A code for each pixel of logits [B,K,h,w], by the position of each clip (models/clip_random.h): [B,h,w] int64. As a clip
// is drawn, so it is alone.
at::Tensor draw_codes(at::Tensor& position, const at::Tensor& logits, const SamplingOptions& options);

}  // namespace convssm::models
