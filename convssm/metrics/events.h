// Forecasts of an event, a value of at least a threshold: the contingency table with its scores, and the fractions skill
// score, which forgives a displacement within a window. Sums that add up over clips; scores of all clips together.
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::metrics {

// Weights of pixels: hits (in both), misses (in truth alone), false alarms (in the forecast alone), correct negatives.
struct EventCounts {
  at::Tensor hits, misses, false_alarms, correct_negatives;
  void add(const EventCounts& other);  // of the same shape; an empty one takes that of the other
  EventCounts sum(int64_t dim) const;
};

// truth, forecast [...,H,W]; weights that broadcast to them (undefined: all 1) -> [...] float64. The event is x >= threshold.
EventCounts event_counts(const at::Tensor& truth, const at::Tensor& forecast, double threshold,
                         const at::Tensor& weights = {});

// NaN where nothing is divided by nothing: CSI without any event, POD and frequency bias without one in truth, FAR
// without one in the forecast. (A frequency bias of events that never were is infinite.)
at::Tensor csi(const EventCounts& n);             // critical success index: hits / (hits + misses + false alarms)
at::Tensor pod(const EventCounts& n);             // probability of detection: hits / (hits + misses)
at::Tensor far(const EventCounts& n);             // false alarm ratio: false alarms / (hits + false alarms)
at::Tensor frequency_bias(const EventCounts& n);  // (hits + false alarms) / (hits + misses)

struct FractionSums {
  at::Tensor difference, reference;  // of (f - t)^2, and of f^2 + t^2, over the fractions f and t of windows
  void add(const FractionSums& other);
  FractionSums sum(int64_t dim) const;
};

// Fractions of event pixels in windows of `window` x `window` pixels around each pixel, the window of an even size
// reaching one pixel further up and left. Outside of the field, and where the weight is 0, there is no event in either;
// windows around such pixels do not count, the others by their weight.
FractionSums fraction_sums(const at::Tensor& truth, const at::Tensor& forecast, double threshold, int64_t window,
                           const at::Tensor& weights = {});

// 1 - difference / reference; NaN without any event (Roberts and Lean 2008; pysteps.verification.spatialscores.fss).
at::Tensor fss(const FractionSums& sums);

}  // namespace convssm::metrics
