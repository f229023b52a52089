// Scores over several lead times are those of their sums: a horizon weighs every pixel of it alike.
#include "convssm/evaluate/field_scores.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace convssm::evaluate {
namespace {

// The number of one element; null if it is none, which JSON cannot hold.
nlohmann::json json_number(const at::Tensor& value) {
  const auto number = value.item<double>();
  return std::isfinite(number) ? nlohmann::json(number) : nlohmann::json();
}

at::Tensor over_clips(const at::Tensor& x) { return x.sum(0); }

}  // namespace

FieldScores::FieldScores(std::string name, const Fields& fields, int64_t frames, uint64_t seed)
    : name_(std::move(name)), fields_(&fields), seed_(seed) {
  const int64_t C = fields.format.depth(), H = fields.format.height, W = fields.format.width;
  correlations_ = at::zeros({frames, C}, at::kDouble);
  correlated_ = at::zeros({frames, C}, at::kDouble);
  map_squared_ = at::zeros({C, H, W}, at::kDouble);
  map_weight_ = at::zeros({C, H, W}, at::kDouble);
  for (const Variable& variable : fields.variables) {
    events_.emplace_back(variable.thresholds.size(),
                         Event{{}, std::vector<metrics::FractionSums>(fields.fss_windows.size())});
  }
}

void FieldScores::add(const FieldBatch& batch, const std::vector<at::Tensor>& futures) {
  const int64_t last = batch.truth.size(1) - 1;
  const at::Tensor measured = (batch.weights.select(1, last) > 0).to(at::kDouble);
  for (const at::Tensor& forecast : futures) {
    errors_.add(metrics::field_errors(batch.truth, forecast, batch.weights).sum(0));
    if (batch.usual.defined()) {
      const at::Tensor acc = metrics::anomaly_correlation(batch.truth, forecast, batch.usual, batch.weights);
      const at::Tensor known = at::isfinite(acc);
      correlations_.add_(over_clips(acc.masked_fill(known.logical_not(), 0)));
      correlated_.add_(over_clips(known.to(at::kDouble)));
    }
    add_events(batch, forecast);
    const at::Tensor error = (forecast - batch.truth).select(1, last).masked_fill(measured == 0, 0);
    map_squared_.add_(over_clips(error.square()));
    map_weight_.add_(over_clips(measured));
  }
  if (futures.size() > 1) add_ensemble(batch, futures);
}

void FieldScores::add_events(const FieldBatch& batch, const at::Tensor& forecast) {
  for (size_t c = 0; c < events_.size(); ++c) {
    const auto of = [&](const at::Tensor& x) { return x.select(2, static_cast<int64_t>(c)); };  // [B,N,H,W]
    const at::Tensor truth = of(batch.truth), mine = of(forecast), weights = of(batch.weights);
    for (size_t i = 0; i < events_[c].size(); ++i) {
      const double threshold = fields_->variables[c].lowered[i];
      events_[c][i].counts.add(metrics::event_counts(truth, mine, threshold, weights).sum(0));
      for (size_t w = 0; w < fields_->fss_windows.size(); ++w) {
        events_[c][i].fractions[w].add(
            metrics::fraction_sums(truth, mine, threshold, fields_->fss_windows[w], weights).sum(0));
      }
    }
  }
}

// Clip by clip, which bounds what is sorted at once.
void FieldScores::add_ensemble(const FieldBatch& batch, const std::vector<at::Tensor>& futures) {
  for (int64_t b = 0; b < batch.truth.size(0); ++b) {
    std::vector<at::Tensor> members;
    for (const at::Tensor& future : futures) members.push_back(future[b]);
    Stream stream(seed_, "ranks", static_cast<uint64_t>(batch.first_clip + b));
    ensemble_.add(metrics::ensemble_sums(batch.truth[b], at::stack(members), stream, batch.weights[b]));
  }
}

nlohmann::json FieldScores::scores(size_t variable, int64_t begin, int64_t end) const {
  const auto c = static_cast<int64_t>(variable);
  const auto part = [&](const at::Tensor& x) { return x.slice(0, begin, end).select(1, c).sum(0); };  // of [N,C,...]
  const metrics::FieldErrors errors{part(errors_.weight), part(errors_.error), part(errors_.absolute),
                                    part(errors_.squared)};
  nlohmann::json json = {{"rmse", json_number(metrics::rmse(errors))},
                         {"mae", json_number(metrics::mae(errors))},
                         {"bias", json_number(metrics::bias(errors))}};
  if (correlated_.sum().item<double>() > 0) json["acc"] = json_number(part(correlations_) / part(correlated_));
  for (size_t i = 0; i < events_[variable].size(); ++i) {
    const auto lead = [&](const at::Tensor& x) { return x.slice(0, begin, end).sum(0); };  // of [N]
    const metrics::EventCounts& n = events_[variable][i].counts;
    const metrics::EventCounts counts{lead(n.hits), lead(n.misses), lead(n.false_alarms), lead(n.correct_negatives)};
    nlohmann::json event = {{"threshold", fields_->variables[variable].thresholds[i]},
                            {"csi", json_number(metrics::csi(counts))},
                            {"pod", json_number(metrics::pod(counts))},
                            {"far", json_number(metrics::far(counts))},
                            {"frequency_bias", json_number(metrics::frequency_bias(counts))}};
    for (size_t w = 0; w < fields_->fss_windows.size(); ++w) {
      const metrics::FractionSums& f = events_[variable][i].fractions[w];
      event["fss"][std::to_string(fields_->fss_windows[w])] =
          json_number(metrics::fss({lead(f.difference), lead(f.reference)}));
    }
    json["events"].push_back(event);
  }
  if (ensemble_.members == 0) return json;
  const metrics::EnsembleSums& e = ensemble_;
  const metrics::EnsembleSums sums{e.members,        part(e.weight),  part(e.crps), part(e.crps_fair),
                                   part(e.variance), part(e.squared), part(e.ranks)};
  const at::Tensor spread = metrics::spread(sums), skill = metrics::skill(sums);
  json["crps"] = json_number(metrics::mean_crps(sums));
  json["crps_fair"] = json_number(metrics::mean_crps_fair(sums));
  json["spread"] = json_number(spread);
  json["rmse_of_mean"] = json_number(skill);
  json["spread_skill"] = json_number(spread / skill);
  const at::Tensor histogram = metrics::rank_histogram(sums);
  for (int64_t r = 0; r <= e.members; ++r) json["rank_histogram"].push_back(json_number(histogram[r]));
  return json;
}

ErrorMaps FieldScores::error_maps() const {
  ErrorMaps maps;
  const at::Tensor root = (map_squared_ / map_weight_).sqrt();
  for (int64_t c = 0; c < root.size(0); ++c) maps.push_back(root[c]);
  return maps;
}

}  // namespace convssm::evaluate
