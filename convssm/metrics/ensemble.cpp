// The sum of all distances between members comes from the sorted ones: sum_ij |x_i - x_j| = 2 sum_k (2k - M - 1) x_(k).
#include "convssm/metrics/ensemble.h"

#include <ATen/ATen.h>

#include <limits>

#include "convssm/metrics/field_weights.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

at::Tensor sum_pixels(const at::Tensor& x) { return x.sum({-2, -1}); }

void check_members(const char* metric, const at::Tensor& truth, const at::Tensor& members) {
  const bool fits = members.defined() && members.dim() == truth.dim() + 1 && members.size(0) > 0 &&
                    members.sizes().slice(1) == truth.sizes();
  ops::require(metric, fits, "members must be [M,...] of truth's {}, got {}", ops::shape_text(truth.sizes()),
               members.defined() ? ops::shape_text(members.sizes()) : "an undefined tensor");
}

// truth, members in float64.
at::Tensor distance_between(const at::Tensor& members) {  // sum_ij |x_i - x_j|
  const int64_t M = members.size(0);
  std::vector<int64_t> shape(static_cast<size_t>(members.dim()), 1);
  shape[0] = M;
  const at::Tensor factors = (2 * at::arange(1, M + 1, at::kDouble) - static_cast<double>(M + 1)).view(shape);
  return 2 * (std::get<0>(members.sort(0)) * factors).sum(0);
}

}  // namespace

at::Tensor crps_ensemble(const at::Tensor& truth, const at::Tensor& members, bool fair) {
  check_members("crps_ensemble", truth, members);
  const at::Tensor y = truth.cpu().to(at::kDouble), x = members.cpu().to(at::kDouble);
  const auto M = static_cast<double>(x.size(0));
  const at::Tensor pairs = distance_between(x) / (2 * M * (fair ? M - 1 : M));  // 0/0 for one member
  return (x - y).abs().mean(0) - pairs;
}

at::Tensor ranks(const at::Tensor& truth, const at::Tensor& members, Stream& stream) {
  check_members("ranks", truth, members);
  const at::Tensor y = truth.cpu(), x = members.cpu();
  at::Tensor below = (x < y).sum(0).contiguous();
  const at::Tensor equal = (x == y).sum(0).contiguous();
  auto* rank = below.data_ptr<int64_t>();
  const auto* tied = equal.data_ptr<int64_t>();
  for (int64_t i = 0; i < below.numel(); ++i) {
    if (tied[i] > 0) rank[i] += static_cast<int64_t>(stream.below(static_cast<uint64_t>(tied[i]) + 1));
  }
  return below;
}

EnsembleSums ensemble_sums(const at::Tensor& truth, const at::Tensor& members, Stream& stream,
                           const at::Tensor& weights) {
  check_members("ensemble_sums", truth, members);
  const WeighedFields f = check_fields("ensemble_sums", truth, members[0], weights);
  const at::Tensor w = f.weights, x = members.cpu().to(at::kDouble).masked_fill(w == 0, 0), mean = x.mean(0);
  const int64_t M = x.size(0);
  const at::Tensor variance = M > 1 ? x.var(0, true) : at::full_like(mean, std::numeric_limits<double>::quiet_NaN());
  const auto sum = [&](const at::Tensor& values) { return sum_pixels((w * values).masked_fill(w == 0, 0)); };
  const at::Tensor rank = ranks(f.truth, x, stream);
  std::vector<at::Tensor> bins;
  for (int64_t r = 0; r <= M; ++r) bins.push_back(sum_pixels(w * (rank == r).to(at::kDouble)));
  return {M,
          sum_pixels(w),
          sum(crps_ensemble(f.truth, x, false)),
          sum(crps_ensemble(f.truth, x, true)),
          sum(variance),
          sum((mean - f.truth).square()),
          at::stack(bins, -1)};
}

void EnsembleSums::add(const EnsembleSums& other) {
  if (members == 0) {
    *this = other;
    return;
  }
  ops::require("ensemble_sums", members == other.members, "all clips must have {} members, got {}", members,
               other.members);
  weight = weight + other.weight;
  crps = crps + other.crps;
  crps_fair = crps_fair + other.crps_fair;
  variance = variance + other.variance;
  squared = squared + other.squared;
  ranks = ranks + other.ranks;
}

EnsembleSums EnsembleSums::sum(int64_t dim) const {
  return {members,           weight.sum(dim),  crps.sum(dim), crps_fair.sum(dim),
          variance.sum(dim), squared.sum(dim), ranks.sum(dim)};
}

at::Tensor mean_crps(const EnsembleSums& sums) { return sums.crps / sums.weight; }
at::Tensor mean_crps_fair(const EnsembleSums& sums) { return sums.crps_fair / sums.weight; }

at::Tensor spread(const EnsembleSums& sums) {
  const auto M = static_cast<double>(sums.members);
  return ((M + 1) / M * sums.variance / sums.weight).sqrt();
}

at::Tensor skill(const EnsembleSums& sums) { return (sums.squared / sums.weight).sqrt(); }

at::Tensor rank_histogram(const EnsembleSums& sums) { return sums.ranks / sums.weight.unsqueeze(-1); }

}  // namespace convssm::metrics
