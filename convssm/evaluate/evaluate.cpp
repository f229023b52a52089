#include "convssm/evaluate/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/option_reader.h"
#include "convssm/data/loader.h"
#include "convssm/evaluate/scores.h"
#include "convssm/metrics/pixels.h"
#include "convssm/models/rollout.h"

namespace convssm::evaluate {
namespace {

// The clips that can be evaluated; an error if a clip is too short.
int64_t count_clips(const data::Dataset& dataset, const EvaluateOptions& o) {
  const int64_t frames = o.context + o.longest();
  if (dataset.size(data::Split::test) == 0) fail(ErrorKind::data, "the dataset has no test clips");
  if (dataset.longest(data::Split::test) < frames) {
    fail(
        ErrorKind::usage,
        "[evaluate] context {} and horizon {} ask for test clips of {} frames, they have {}; set evaluate.horizons and "
        "evaluate.context to less",
        o.context, o.longest(), frames, dataset.longest(data::Split::test));
  }
  return static_cast<int64_t>(std::min<uint64_t>(o.samples, dataset.size(data::Split::test)));
}

nlohmann::json summary(const std::vector<Scores>& all, const EvaluateOptions& o, int64_t clips) {
  nlohmann::json protocol = o.to_json();
  protocol["samples"] = clips;
  protocol["split"] = "test";
  protocol["model"] = all[0].name();
  protocol["identical_frames"] = all[0].identical_frames();
  nlohmann::json horizons = nlohmann::json::array(), curves = {{"frames", nlohmann::json::array()}};
  for (const int64_t frames : o.horizons) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Scores& scores : all) rows.push_back(scores.row(frames, o.chunk));
    horizons.push_back({{"frames", frames}, {"rows", rows}});
  }
  for (int64_t k = 1; k <= o.longest(); ++k) curves["frames"].push_back(k);
  for (const std::string& metric : all[0].metrics()) {
    for (const Scores& scores : all) curves[metric][scores.name()] = scores.curve(metric);
  }
  return {{"protocol", protocol}, {"horizons", horizons}, {"curves", curves}};
}

}  // namespace

EvaluateOptions EvaluateOptions::from_json(const nlohmann::json& json) {
  EvaluateOptions o;
  OptionReader read("evaluate", json);
  read("context", o.context);
  read("horizons", o.horizons);
  read("samples", o.samples);
  read("chunk", o.chunk);
  read("batch", o.batch);
  read("strips", o.strips);
  read("quantize", o.quantize);
  read.finish();
  const auto require = [](bool ok, const char* key, const char* expected, int64_t found) {
    if (!ok) fail(ErrorKind::usage, "[evaluate] {} must be {}, got {}", key, expected, found);
  };
  require(o.context > 0, "context", "at least 1 frame", o.context);
  require(!o.horizons.empty(), "horizons", "a list of frame counts", 0);
  for (const int64_t frames : o.horizons) require(frames > 0, "horizons", "positive", frames);
  require(o.samples > 0, "samples", "positive", o.samples);
  require(o.chunk > 0, "chunk", "positive", o.chunk);
  require(o.batch > 0, "batch", "positive", o.batch);
  require(o.strips >= 0, "strips", "0 or positive", o.strips);
  return o;
}

nlohmann::json EvaluateOptions::to_json() const {
  return {{"context", context}, {"horizons", horizons}, {"samples", samples},  {"chunk", chunk},
          {"batch", batch},     {"strips", strips},     {"quantize", quantize}};
}

int64_t EvaluateOptions::longest() const { return *std::max_element(horizons.begin(), horizons.end()); }

Evaluation evaluate(models::Model& model, const data::Dataset& dataset, const EvaluateOptions& o,
                    const std::string& name, const std::function<bool(int64_t)>& progress) {
  at::NoGradGuard no_grad;
  const int64_t clips = count_clips(dataset, o), K = o.context, N = o.longest();
  const auto as_f01 = [&](const at::Tensor& x) { return o.quantize ? metrics::truncated_f01(x) : metrics::to_f01(x); };
  std::vector<Scores> all = {Scores(name), Scores("copy last frame"), Scores("blank frame")};
  Evaluation result;
  result.clips.context = K;
  int64_t done = 0;
  bool go_on = true;
  while (done < clips && go_on) {
    const int64_t count = std::min(o.batch, clips - done);
    const data::Batch batch = data::read_clips(dataset, data::Split::test, done, count, K + N);
    const at::Tensor context = batch.video.slice(1, 0, K), future = models::rollout(model, context, batch.actions, N);
    const at::Tensor truth = as_f01(batch.video.slice(1, K)), last = as_f01(context.slice(1, K - 1));
    all[0].add(truth, as_f01(future));
    all[1].add(truth, last.expand_as(truth).contiguous());
    all[2].add(truth, at::zeros_like(truth));
    for (int64_t i = 0; i < count && done + i < o.strips; ++i) {
      result.clips.truth.push_back(batch.video[i]);
      result.clips.forecast.push_back(at::cat({context[i], future[i]}));
    }
    done += count;
    if (progress) go_on = progress(done);
  }
  result.metrics = summary(all, o, done);
  return result;
}

}  // namespace convssm::evaluate
