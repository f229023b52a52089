// The `evaluate` section of a config.
#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/option_reader.h"
#include "convssm/evaluate/evaluate.h"

namespace convssm::evaluate {

EvaluateOptions EvaluateOptions::from_json(const nlohmann::json& json) {
  EvaluateOptions o;
  OptionReader read("evaluate", json);
  read("context", o.context);
  read("horizons", o.horizons);
  read("frames", o.frames);
  read("samples", o.samples);
  read("stride", o.stride);
  read("chunk", o.chunk);
  read("batch", o.batch);
  read("strips", o.strips);
  read("quantize", o.quantize);
  read("metrics", o.metrics);
  read("seed", o.seed);
  read.finish();
  const auto require = [](bool ok, const char* key, const char* expected, int64_t found) {
    if (!ok) fail(ErrorKind::usage, "[evaluate] {} must be {}, got {}", key, expected, found);
  };
  require(o.context > 0, "context", "at least 1 frame", o.context);
  require(!o.horizons.empty(), "horizons", "a list of frame counts", 0);
  for (const int64_t frames : o.horizons) require(frames > 0, "horizons", "positive", frames);
  require(o.frames > 0, "frames", "positive", o.frames);
  require(o.samples > 0, "samples", "positive", o.samples);
  require(o.stride >= 0, "stride", "0 or positive", o.stride);
  require(o.chunk > 0, "chunk", "positive", o.chunk);
  require(o.batch > 0, "batch", "positive", o.batch);
  require(o.strips >= 0, "strips", "0 or positive", o.strips);
  for (const std::string& metric : o.metrics) metrics::find_metric(metric);
  return o;
}

nlohmann::json EvaluateOptions::to_json() const {
  return {{"context", context}, {"horizons", horizons}, {"samples", samples},   {"stride", stride},   {"chunk", chunk},
          {"batch", batch},     {"strips", strips},     {"quantize", quantize}, {"metrics", metrics}, {"seed", seed}};
}

int64_t EvaluateOptions::longest() const { return *std::max_element(horizons.begin(), horizons.end()); }

}  // namespace convssm::evaluate
