// Rows of logits are read once for the loss: log sum exp, the label's logit and the mean of all are all it needs.
#include "convssm/models/codes/code_loss.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/models/clip_random.h"
#include "convssm/ops/check.h"

namespace convssm::models {

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels, double smoothing) {
  ops::require("cross_entropy", logits.dim() == 4 && labels.dim() == 3 && labels.size(0) == logits.size(0),
               "expected logits [N,K,h,w] and labels [N,h,w], got {} and {}", ops::shape_text(logits.sizes()),
               ops::shape_text(labels.sizes()));
  const at::Tensor rows = logits.permute({0, 2, 3, 1});
  at::Tensor said = rows.gather(-1, labels.unsqueeze(-1)).squeeze(-1) * (1 - smoothing);
  if (smoothing > 0) said = said + rows.mean(-1) * smoothing;
  return rows.logsumexp(-1) - said;
}

double label_entropy(int64_t count, double smoothing) {
  const double K = static_cast<double>(count), low = smoothing / K, high = 1 - smoothing + low;
  const double log_sum = std::log(std::exp(high) + (K - 1) * std::exp(low));
  return log_sum - (high * high + (K - 1) * low * low);
}

void SamplingOptions::read_from(OptionReader& read) {
  read("temperature", temperature);
  read("top_k", top_k);
  read("top_p", top_p);
  ops::require("model", std::isfinite(temperature) && temperature > 0,
               "temperature must be above 0, got {}; small ones come near the most likely codes, top_k: 1 takes them",
               temperature);
  ops::require("model", top_k >= 0, "top_k must be positive, or 0 for all codes, got {}", top_k);
  ops::require("model", std::isfinite(top_p) && top_p > 0 && top_p <= 1,
               "top_p must be above 0 and at most 1, the probability of all codes, got {}", top_p);
}

at::Tensor code_probabilities(const at::Tensor& logits, const SamplingOptions& options) {
  at::Tensor rows = logits;
  const int64_t K = rows.size(-1);
  if (options.top_k > 0 && options.top_k < K) {
    const at::Tensor least = std::get<0>(rows.topk(options.top_k, -1)).slice(-1, -1);
    rows = rows.masked_fill(rows < least, -std::numeric_limits<double>::infinity());
  }
  const at::Tensor all = (rows.to(at::kDouble) / options.temperature).softmax(-1);
  if (options.top_p >= 1) return all;
  // A code stays if those before it have less than top_p; the first always does.
  const auto [sorted, order] = all.sort(-1, /*descending=*/true);
  const at::Tensor before = sorted.cumsum(-1) - sorted;
  const at::Tensor kept = at::empty_like(sorted).scatter_(-1, order, (before < options.top_p).to(at::kDouble));
  const at::Tensor most = all * kept;
  return most / most.sum(-1, true);
}

at::Tensor draw_codes(at::Tensor& position, const at::Tensor& logits, const SamplingOptions& options) {
  return draw_category(position, code_probabilities(logits.permute({0, 2, 3, 1}), options));
}

}  // namespace convssm::models
