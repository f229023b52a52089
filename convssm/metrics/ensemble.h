// Forecasts of several futures, the members of an ensemble: whether they are near the truth and as far apart as they should
// be. Members [M,...,H,W] stand before the truth [...,H,W]; sums over pixels add up over clips.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/base/random.h"

namespace convssm::metrics {

// The continuous ranked probability score of each pixel, [...,H,W] float64 in the units of the values:
//   ordinary   mean |x_i - y| - 1/(2 M^2) sum_ij |x_i - x_j|        as properscoring.crps_ensemble
//   fair       the same with 1/(2 M (M-1)): what members of the same distribution would get if there were more of them.
//              NaN for one member
// Of one member the ordinary one is the absolute error.
at::Tensor crps_ensemble(const at::Tensor& truth, const at::Tensor& members, bool fair);

// How many members are below the truth, [...,H,W] int64 from 0 to M; a member that equals it is below with a chance that
// makes all ranks between equally likely (of T equal ones 0 to T more, drawn from the stream pixel by pixel).
at::Tensor ranks(const at::Tensor& truth, const at::Tensor& members, Stream& stream);

struct EnsembleSums {
  int64_t members = 0;
  at::Tensor weight;           // [...]: of what was counted
  at::Tensor crps, crps_fair;  // [...]
  at::Tensor variance;         // [...]: of the members, unbiased (over M - 1)
  at::Tensor squared;          // [...]: error of the mean of the members
  at::Tensor ranks;            // [...,M+1]: weight of the pixels of each rank
  void add(const EnsembleSums& other);
  EnsembleSums sum(int64_t dim) const;  // over a leading dimension
};

// weights that broadcast to truth (pixel_weights; undefined: all 1).
EnsembleSums ensemble_sums(const at::Tensor& truth, const at::Tensor& members, Stream& stream,
                           const at::Tensor& weights = {});

at::Tensor mean_crps(const EnsembleSums& sums);
at::Tensor mean_crps_fair(const EnsembleSums& sums);

// sqrt((M+1)/M mean variance): in expectation equal to the skill if truth and members are draws of one distribution
// (Fortin et al. 2014). NaN for one member.
at::Tensor spread(const EnsembleSums& sums);
at::Tensor skill(const EnsembleSums& sums);           // RMSE of the mean of the members
at::Tensor rank_histogram(const EnsembleSums& sums);  // [...,M+1], sum 1; flat if the ensemble is reliable

}  // namespace convssm::metrics
