// Sums over windows are differences of running sums: the cost does not grow with the window.
#include "convssm/metrics/events.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/metrics/field_weights.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

at::Tensor all_pixels(const at::Tensor& x) { return x.sum({-2, -1}); }

void add_to(at::Tensor& sum, const at::Tensor& more) { sum = sum.defined() ? sum + more : more; }

// Sums over [i - window/2, i - window/2 + window) of dimension `dim`, 0 outside.
at::Tensor window_sums(const at::Tensor& x, int64_t dim, int64_t window) {
  const int64_t size = x.size(dim);
  std::vector<int64_t> first_row = x.sizes().vec();
  first_row[static_cast<size_t>(dim < 0 ? dim + x.dim() : dim)] = 1;
  const at::Tensor running = at::cat({at::zeros(first_row, x.options()), x.cumsum(dim)}, dim);
  const at::Tensor begin = at::arange(size, at::kLong) - window / 2;
  return running.index_select(dim, (begin + window).clamp(0, size)) - running.index_select(dim, begin.clamp(0, size));
}

at::Tensor fractions(const at::Tensor& event, int64_t window) {
  if (window == 1) return event;
  return window_sums(window_sums(event, -1, window), -2, window) / static_cast<double>(window * window);
}

struct Events {
  at::Tensor truth, forecast, weights;  // 1 where the event is, 0 elsewhere
};

Events find_events(const char* metric, const at::Tensor& truth, const at::Tensor& forecast, double threshold,
                   const at::Tensor& weights) {
  const WeighedFields f = check_fields(metric, truth, forecast, weights);
  const at::Tensor counted = f.weights > 0;
  const auto event = [&](const at::Tensor& x) { return (x >= threshold).logical_and(counted).to(at::kDouble); };
  return {event(f.truth), event(f.forecast), f.weights};
}

}  // namespace

void EventCounts::add(const EventCounts& other) {
  add_to(hits, other.hits);
  add_to(misses, other.misses);
  add_to(false_alarms, other.false_alarms);
  add_to(correct_negatives, other.correct_negatives);
}

EventCounts EventCounts::sum(int64_t dim) const {
  return {hits.sum(dim), misses.sum(dim), false_alarms.sum(dim), correct_negatives.sum(dim)};
}

EventCounts event_counts(const at::Tensor& truth, const at::Tensor& forecast, double threshold,
                         const at::Tensor& weights) {
  const Events e = find_events("event_counts", truth, forecast, threshold, weights);
  const at::Tensor both = all_pixels(e.weights * e.truth * e.forecast), in_truth = all_pixels(e.weights * e.truth);
  const at::Tensor in_forecast = all_pixels(e.weights * e.forecast);
  return {both, in_truth - both, in_forecast - both, all_pixels(e.weights) - in_truth - in_forecast + both};
}

at::Tensor csi(const EventCounts& n) { return n.hits / (n.hits + n.misses + n.false_alarms); }
at::Tensor pod(const EventCounts& n) { return n.hits / (n.hits + n.misses); }
at::Tensor far(const EventCounts& n) { return n.false_alarms / (n.hits + n.false_alarms); }
at::Tensor frequency_bias(const EventCounts& n) { return (n.hits + n.false_alarms) / (n.hits + n.misses); }

void FractionSums::add(const FractionSums& other) {
  add_to(difference, other.difference);
  add_to(reference, other.reference);
}

FractionSums FractionSums::sum(int64_t dim) const { return {difference.sum(dim), reference.sum(dim)}; }

FractionSums fraction_sums(const at::Tensor& truth, const at::Tensor& forecast, double threshold, int64_t window,
                           const at::Tensor& weights) {
  ops::require("fraction_sums", window > 0, "the window must be at least 1 pixel, got {}", window);
  const Events e = find_events("fraction_sums", truth, forecast, threshold, weights);
  const at::Tensor t = fractions(e.truth, window), f = fractions(e.forecast, window);
  return {all_pixels(e.weights * (f - t).square()), all_pixels(e.weights * (f * f + t * t))};
}

at::Tensor fss(const FractionSums& sums) { return 1 - sums.difference / sums.reference; }

}  // namespace convssm::metrics
