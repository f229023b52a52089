#include "convssm/evaluate/seen.h"

#include <ATen/ATen.h>

namespace convssm::evaluate {

at::Tensor seen_in_context(const at::Tensor& revisit, int64_t K) {
  const at::Tensor from = revisit.cpu().contiguous();
  const int64_t B = from.size(0), T = from.size(1);
  at::Tensor seen = at::zeros({B, T - K}, at::kBool);
  for (int64_t b = 0; b < B; ++b) {
    const int64_t* earlier = from.data_ptr<int64_t>() + b * T;
    bool* out = seen.data_ptr<bool>() + b * (T - K);
    for (int64_t t = K; t < T; ++t) {  // of earlier frames it is known already
      const int64_t s = earlier[t];
      out[t - K] = s >= 0 && (s < K || out[s - K]);
    }
  }
  return seen;
}

void add_seen_rows(nlohmann::json& horizon, const std::vector<Scores>& scores, const at::Tensor& seen, int64_t frames) {
  const auto add = [&](const char* key, const at::Tensor& counted) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Scores& forecaster : scores) {
      nlohmann::json row = forecaster.row_of(frames, counted);
      if (!row.is_null()) rows.push_back(std::move(row));
    }
    const double share = counted.slice(1, 0, frames).to(at::kDouble).mean().item<double>();
    horizon[key] = {{"share", share}, {"rows", rows}};
  };
  add("seen_before", seen);
  add("never_seen", seen.logical_not());
}

}  // namespace convssm::evaluate
