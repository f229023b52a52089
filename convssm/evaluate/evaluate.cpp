// Clip by clip, so that memory does not grow with the number of clips; the model and the forecasts without one see the same.
#include "convssm/evaluate/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <span>

#include "convssm/base/error.h"
#include "convssm/evaluate/fvd_scores.h"
#include "convssm/evaluate/scores.h"
#include "convssm/evaluate/seen.h"
#include "convssm/evaluate/windows.h"
#include "convssm/generate/generate.h"
#include "convssm/generate/rollout.h"

namespace convssm::evaluate {
namespace {

// What can be evaluated; an error if a clip is too short.
std::vector<Window> find_windows(const data::Dataset& dataset, const EvaluateOptions& o) {
  const int64_t frames = o.context + o.longest();
  if (dataset.size(data::Split::test) == 0) fail(ErrorKind::data, "the dataset has no test clips");
  if (dataset.longest(data::Split::test) < frames) {
    const std::string which = dataset.short_clips(data::Split::test, frames);
    fail(
        ErrorKind::usage,
        "[evaluate] context {} and horizon {} ask for test clips of {} frames, they have {}; set evaluate.horizons and "
        "evaluate.context to less{}",
        o.context, o.longest(), frames, dataset.longest(data::Split::test), which.empty() ? "" : ". " + which);
  }
  return test_windows(dataset, frames, o.stride, o.samples);
}

data::Clips read_windows(const data::Dataset& dataset, std::span<const Window> windows, int64_t frames) {
  std::vector<data::Clips> rows;
  for (const Window& window : windows) {
    rows.push_back(dataset.part(data::Split::test, window.clip, window.first, frames));
  }
  return data::stack_rows(rows);
}

Frames blank(const Frames& like) {
  return {at::zeros_like(like.f01), like.bytes.defined() ? at::zeros_like(like.bytes) : at::Tensor()};
}

// The one frame [B,1,C,H,W] for as long as `like`.
Frames repeated(const Frames& frame, const Frames& like) {
  return {frame.f01.expand_as(like.f01).contiguous(),
          like.bytes.defined() ? frame.bytes.expand_as(like.bytes).contiguous() : at::Tensor()};
}

// What is gathered over the clips.
struct Gathered {
  std::vector<Scores> scores;  // the model, then the forecasts without one
  std::optional<FvdScores> fvd;
  std::vector<at::Tensor> seen;  // [B,N] of each batch: frames of places that the context showed; empty: nobody knows

  Gathered(const EvaluateOptions& o, const metrics::MetricSet& metrics, const std::string& name)
      : scores{{name, metrics}, {"copy last frame", metrics}, {"blank frame", metrics}} {
    if (metrics.i3d() == nullptr) return;
    std::vector<int64_t> lengths;
    for (const int64_t frames : o.horizons) lengths.push_back(o.context + frames);
    fvd.emplace(*metrics.i3d(), lengths, scores.size(), o.chunk);
  }

  void add(const metrics::MetricSet& metrics, const Frames& truth, const std::vector<Frames>& forecasts) {
    for (size_t i = 0; i < scores.size(); ++i) scores[i].add(score_frames(metrics, truth, forecasts[i]));
  }

  // Clip `i` of a batch.
  void add_clip(const Frames& context, const Frames& truth, const std::vector<Frames>& forecasts, int64_t i) {
    if (!fvd) return;
    const auto whole = [&](const Frames& future) { return at::cat({context.f01[i], future.f01[i]}); };
    std::vector<at::Tensor> clips;
    for (const Frames& forecast : forecasts) clips.push_back(whole(forecast));
    fvd->add(whole(truth), clips);
  }
};

// The forecasts of a model for one batch after another, by one predictor for batches of one size: compiling it costs about
// as much as a frame.
class Forecasts {
 public:
  Forecasts(models::Model& model, const generate::PredictorOptions& engine, uint64_t seed)
      : model_(model), engine_(engine), seed_(seed) {}

  // The frames after the first K of clips, the first of which has the number `first`.
  at::Tensor of(const data::Clips& clips, int64_t K, int64_t first) {
    if (!predictor_ || predictor_->batch() != clips.batch()) {
      engine_.batch = clips.batch();
      predictor_.emplace(model_, engine_);
    }
    models::Seeds seeds;
    for (int64_t i = 0; i < clips.batch(); ++i) seeds.push_back(generate::future_seed(seed_, first + i, 0));
    predictor_->start(data::frames_of(clips, 0, K), seeds);
    const at::Tensor coming = clips.actions.defined() ? clips.actions.slice(1, K) : clips.actions;
    return generate::rollout(*predictor_, coming, clips.frames() - K).cpu();
  }

  const char* engine() const { return predictor_ && predictor_->compiled() ? "plan" : "eager"; }

 private:
  models::Model& model_;
  generate::PredictorOptions engine_;
  uint64_t seed_;
  std::optional<generate::Predictor> predictor_;
};

nlohmann::json describe_protocol(const EvaluateOptions& o, const metrics::MetricSet& metrics, const Scores& model,
                                 const std::vector<Window>& windows) {
  nlohmann::json protocol = o.to_json();
  protocol["samples"] = windows.size();
  protocol["clips"] = clips_of(windows);
  protocol["split"] = "test";
  protocol["model"] = model.name();
  protocol["identical_frames"] = model.identical_frames();
  protocol["pixels"] = o.quantize ? "8 bits, cut down, then [0,1]" : "float32 in [0,1]";
  protocol["metrics"] = metrics.description();
  protocol["left_out"] = metrics.left_out();
  return protocol;
}

nlohmann::json summary(const Gathered& all, const EvaluateOptions& o, const metrics::MetricSet& metrics,
                       const std::vector<Window>& windows) {
  nlohmann::json horizons = nlohmann::json::array(), curves = {{"frames", nlohmann::json::array()}};
  for (size_t h = 0; h < o.horizons.size(); ++h) {
    nlohmann::json rows = nlohmann::json::array();
    for (size_t i = 0; i < all.scores.size(); ++i) {
      rows.push_back(all.scores[i].row(o.horizons[h], o.chunk, clips_of(windows) > 1));
      if (all.fvd) rows.back()["fvd_i3d"] = all.fvd->value(h, i);
    }
    horizons.push_back({{"frames", o.horizons[h]}, {"rows", rows}});
    if (!all.seen.empty()) add_seen_rows(horizons.back(), all.scores, at::cat(all.seen), o.horizons[h]);
  }
  for (int64_t k = 1; k <= o.longest(); ++k) curves["frames"].push_back(k);
  for (const std::string& metric : all.scores[0].metrics()) {
    for (const Scores& scores : all.scores) curves[metric][scores.name()] = scores.curve(metric);
  }
  return {
      {"protocol", describe_protocol(o, metrics, all.scores[0], windows)}, {"horizons", horizons}, {"curves", curves}};
}

}  // namespace

int64_t count_samples(const data::Dataset& dataset, const EvaluateOptions& o) {
  return static_cast<int64_t>(find_windows(dataset, o).size());
}

metrics::MetricSet make_metrics(const EvaluateOptions& o, const data::Dataset& dataset,
                                const metrics::WeightFolder& weights) {
  const data::FrameFormat format = dataset.format();
  const int64_t shortest = o.context + *std::min_element(o.horizons.begin(), o.horizons.end());
  return {o.metrics, weights, {shortest, format.depth(), format.height, format.width, o.quantize}};
}

Evaluation evaluate(models::Model& model, const data::Dataset& dataset, const EvaluateOptions& o,
                    const metrics::MetricSet& metrics, const std::string& name,
                    const std::function<bool(int64_t)>& progress, const generate::PredictorOptions& engine) {
  at::NoGradGuard no_grad;
  const models::EvalMode mode(model);
  std::vector<Window> windows = find_windows(dataset, o);
  const auto samples = static_cast<int64_t>(windows.size()), K = o.context, N = o.longest();
  Gathered all(o, metrics, name);
  Forecasts ours(model, engine, o.seed);
  Evaluation result;
  result.clips.context = K;
  int64_t done = 0;
  bool go_on = true;
  while (done < samples && go_on) {
    const int64_t count = std::min(o.batch, samples - done);
    const data::Clips batch =
        read_windows(dataset, std::span(windows).subspan(static_cast<size_t>(done), static_cast<size_t>(count)), K + N);
    const at::Tensor known = batch.video.slice(1, 0, K), future = ours.of(batch, K, done);
    const Frames context = as_frames(known, o.quantize), truth = as_frames(batch.video.slice(1, K), o.quantize);
    const Frames last = as_frames(known.slice(1, K - 1), o.quantize);
    const std::vector<Frames> forecasts = {as_frames(future, o.quantize), repeated(last, truth), blank(truth)};
    all.add(metrics, truth, forecasts);
    if (batch.revisit.defined()) all.seen.push_back(seen_in_context(batch.revisit, K));
    for (int64_t i = 0; i < count; ++i) {
      if (done < o.strips) {
        result.clips.truth.push_back(batch.video[i]);
        result.clips.forecast.push_back(at::cat({known[i], future[i]}));
      }
      all.add_clip(context, truth, forecasts, i);
      ++done;
      if (progress) go_on = progress(done);
    }
  }
  windows.resize(static_cast<size_t>(done));
  result.metrics = summary(all, o, metrics, windows);
  result.metrics["protocol"]["engine"] = ours.engine();
  result.metrics["protocol"]["precision"] = generate::name(engine.precision);
  return result;
}

}  // namespace convssm::evaluate
