// How much of test frames a tokenizer keeps: it encodes and decodes them, and what comes back is compared with what went in.
// It is the ceiling of every model of its codes. Beside the scores stand the codes: how many are in use, and how evenly.
#pragma once

#include <functional>
#include <string>

#include "convssm/evaluate/evaluate.h"

namespace convssm::evaluate {

// options.frames frames of each of options.samples test clips (or windows of long ones). metrics.json has one row for the
// tokenizer and one for blank frames, and `codes`: {"size", "grid", "count", "used", "perplexity"}, of a continuous
// one {"grid", "numbers"}. `progress(done)` is told the clips done; a false ends the evaluation after that batch.
Evaluation evaluate_tokenizer(models::Model& model, const data::Dataset& dataset, const EvaluateOptions& options,
                              const metrics::MetricSet& metrics, const std::string& name,
                              const std::function<bool(int64_t)>& progress = {});

// How many clips or windows that will be. Error(usage) if test clips are too short.
int64_t count_reconstructed(const data::Dataset& dataset, const EvaluateOptions& options);

// The metrics of the options for single frames of the dataset.
metrics::MetricSet make_frame_metrics(const EvaluateOptions& options, const data::Dataset& dataset,
                                      const metrics::WeightFolder& weights = metrics::WeightFolder());

// The table for a terminal.
std::string reconstruction_text(const nlohmann::json& metrics);

}  // namespace convssm::evaluate
