// The paper's protocol: a model sees the context of test clips and rolls out; its frames are compared with the truth
// over several horizons, in one setting or in several. Beside it stand forecasts that need no model, so that a number means
// something.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/data/comparison.h"
#include "convssm/data/dataset.h"
#include "convssm/evaluate/field_contest.h"
#include "convssm/evaluate/setting.h"
#include "convssm/evaluate/skill_options.h"
#include "convssm/evaluate/truth.h"
#include "convssm/generate/predictor.h"
#include "convssm/metrics/metric_set.h"
#include "convssm/models/model.h"

namespace convssm::evaluate {

struct EvaluateOptions {
  std::vector<Setting> settings = {Setting()};  // one without a name, or several with names
  int64_t frames = 16;                          // of a clip, of tokenizers
  int64_t samples = 1024;                       // test clips, or windows of long ones
  int64_t futures = 1;                          // of each clip, of models that draw or are perturbed
  double perturb = 0;           // noise on what a model remembers (generate/perturb.h), but for the first future
  int64_t stride = 0;           // frames between windows of a clip; 0: they do not overlap
  int64_t chunk = 256;          // the spread is that between the means of this many clips
  int64_t batch = 8;            // clips at once
  int64_t strips = 4;           // clips shown as pictures
  bool quantize = true;         // pixels become 8 bits, truncated, before they are compared
  Real real = Real::originals;  // what forecasts are compared with
  std::vector<std::string> metrics = {};     // by name; empty: all that fit and whose weights are at hand
  uint64_t seed = 1;                         // of the futures of models that draw, and of ties in ranks
  SkillOptions skill = {};                   // scores in the units of the data
  std::vector<std::string> references = {};  // forecasts without a model, by name; empty: those that apply

  // The `evaluate` section of a config. Unknown keys are errors.
  static EvaluateOptions from_json(const nlohmann::json& json);
  nlohmann::json to_json() const;
};

struct Evaluation {
  // The content of metrics.json. Of one setting without a name {"protocol", "horizons": [...], "curves": {...}}; of others
  // {"protocol", "settings": [{"name", "context", "frames", "horizons": [...], "curves": {...}}, ...]}. With clips that
  // know their revisits, a horizon also has "seen_before" and "never_seen" (seen.h). Fields in units have "skill" beside the
  // horizons (field_contest.h).
  nlohmann::json metrics;
  std::vector<data::Comparison> clips;                // those that are shown, of each setting
  std::vector<std::vector<VariableMaps>> error_maps;  // of each setting, of each variable of fields; none of pictures
};

// `engine` is how the frames are made (its batch is options.batch): by default as `convssm generate` makes them, so that a
// table says what a user gets. `name` is how the model is called in the tables. `metrics` are those of the settings (see
// make_metrics). `progress(done)` is told the clips done, each once for every setting; a false ends the evaluation after that
// batch, with the clips and settings so far. `also`: more models of the same frames and actions, whose futures count as futures of the
// clips too, such as checkpoints of one training.
Evaluation evaluate(models::Model& model, const data::Dataset& dataset, const EvaluateOptions& options,
                    const std::vector<metrics::MetricSet>& metrics, const std::string& name,
                    const std::function<bool(int64_t)>& progress = {}, const generate::PredictorOptions& engine = {},
                    const std::vector<models::Model*>& also = {});

// How many clips that progress will be told: the samples, once for every setting. Error(usage) if test clips are too short.
int64_t count_samples(const data::Dataset& dataset, const EvaluateOptions& options);

// The metrics of every setting for such frames (see scored_frames).
std::vector<metrics::MetricSet> make_metrics(const EvaluateOptions& options, const data::FrameFormat& frames,
                                             const metrics::WeightFolder& weights = metrics::WeightFolder(),
                                             const metrics::I3dOptions& i3d = {});

// The table for a terminal.
std::string table_text(const nlohmann::json& metrics);

}  // namespace convssm::evaluate
