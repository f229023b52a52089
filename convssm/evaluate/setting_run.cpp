// Frames that were seen are never forecast: they are the true ones in what FVD and pictures show of every forecast. The best
// that a tokenizer allows is measured against originals, also where forecasts are compared with reconstructions, which it
// would meet exactly.
#include "convssm/evaluate/setting_run.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <span>

#include "convssm/evaluate/contest.h"
#include "convssm/evaluate/field_contest.h"
#include "convssm/evaluate/futures.h"
#include "convssm/evaluate/seen.h"
#include "convssm/generate/actions.h"

namespace convssm::evaluate {
namespace {

constexpr const char* kCeiling = "tokenizer ceiling";

std::vector<Scores> all_scores(const std::vector<Contest>& contests) {
  std::vector<Scores> all;
  for (const Contest& contest : contests) all.insert(all.end(), contest.scores().begin(), contest.scores().end());
  return all;
}

class SettingRun {
 public:
  SettingRun(const EvaluationJob& job, const Setting& setting, const metrics::MetricSet& metrics)
      : job_(job), o_(job.options), setting_(setting), metrics_(metrics) {
    for (const Member& member : job.members) futures_.emplace_back(*member.model, job.engine, o_.seed, o_.perturb);
    std::vector<std::string> names = {job.name};
    for (const NamedReference& one : job.references.all) names.push_back(one.info->name);
    if (job.truth.has_ceiling() && job.truth.originals()) names.push_back(kCeiling);
    contests_.emplace_back(names, setting, metrics, o_.chunk);
    if (job.truth.has_ceiling() && !job.truth.originals()) {
      contests_.emplace_back(std::vector<std::string>{kCeiling}, setting, metrics, o_.chunk);
    }
    if (job.fields != nullptr) fields_.emplace(names, *job.fields, setting, o_.seed);
    result_.clips.context = setting.context;
  }

  // Clips [first, first + count) of the windows.
  void add(int64_t first, int64_t count) {
    const auto these = std::span(job_.windows).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
    const int64_t K = setting_.context;
    data::Clips clips = read_windows(job_.dataset, these, setting_.frames());
    has_actions_ = clips.actions.defined();
    const data::ActionFormat format = models::forecaster_of(job_.model).actions();
    if (!setting_.actions) {
      clips.actions = format.matter() ? generate::masked_actions(count, setting_.frames(), format)
                                      : data::masked_like(clips.actions);
    }
    if (clips.revisit.defined()) seen_.push_back(seen_in_context(clips.revisit, K));

    const TrueVideos videos = job_.truth.of(clips, K);
    const at::Tensor known = videos.real.slice(1, 0, K), coming = videos.real.slice(1, K);
    const Measured measured(coming, clips.valid.defined() ? clips.valid.slice(1, K).cpu() : at::Tensor());
    const Frames context = frames(known), truth = measured.truth(o_.quantize);
    const bool apart = contests_.size() > 1;
    std::vector<Forecast> all(1);
    std::vector<std::vector<at::Tensor>> futures = {futures_of(clips, first, measured, truth, all[0])};
    show(videos.real, at::cat({known, futures[0][0]}, 1));
    const Past past{known, clips.valid.defined() ? clips.valid.slice(1, 0, K).cpu() : at::Tensor(),
                    clips.timing.times.defined() ? clips.timing.times.cpu() : at::Tensor()};
    for (const NamedReference& one : job_.references.all) {
      futures.push_back({one.reference->forecast(past, setting_.longest())});
    }
    if (videos.back.defined() && !apart) futures.push_back({videos.back});
    for (size_t i = 1; i < futures.size(); ++i) all.push_back({measured.forecast(futures[i][0], o_.quantize)});
    contests_[0].add(context, truth, all);
    if (fields_) fields_->add({coming, measured.valid(), usual_of(futures), first}, futures);
    if (!apart) return;
    contests_[1].add(frames(clips.video.slice(1, 0, K).cpu()), frames(videos.originals), {{frames(videos.back)}});
  }

  SettingResult finish(int64_t done) {
    std::vector<Window> seen = job_.windows;
    seen.resize(static_cast<size_t>(done));
    nlohmann::json& json = result_.json;
    json = {{"samples", done},
            {"clips", clips_of(seen)},
            {"identical_frames", contests_[0].scores()[0].identical_frames()},
            {"engine", futures_[0].engine()},
            {"horizons", horizons(clips_of(seen) > 1)},
            {"curves", curves()}};
    if (has_actions_) json["actions"] = setting_.actions;
    if (fields_) {
      json["skill"] = fields_->to_json();
      result_.error_maps = fields_->maps();
    }
    return std::move(result_);
  }

 private:
  // Of all members. They are scored on the way: the first is kept, the others where fields need them.
  std::vector<at::Tensor> futures_of(const data::Clips& clips, int64_t first, const Measured& measured,
                                     const Frames& truth, Forecast& scored) {
    std::vector<at::Tensor> kept;
    for (size_t m = 0; m < job_.members.size(); ++m) {
      for (int64_t i = 0; i < job_.members[m].futures; ++i) {
        const at::Tensor future = futures_[m].of(clips, setting_.context, first, i);
        const Frames own = measured.forecast(future, o_.quantize);
        if (kept.empty()) {
          scored.first = own;
        } else {
          scored.others.push_back(score_frames(metrics_, truth, own));
        }
        if (kept.empty() || fields_) kept.push_back(future);
      }
    }
    return kept;
  }

  Frames frames(const at::Tensor& video) const { return as_frames(video, o_.quantize); }

  // The forecast of the climatology, if it is among them.
  at::Tensor usual_of(const std::vector<std::vector<at::Tensor>>& futures) const {
    const NamedReference* usual = job_.references.usual();
    return usual == nullptr ? at::Tensor() : futures[static_cast<size_t>(usual - job_.references.all.data()) + 1][0];
  }

  void show(const at::Tensor& truth, const at::Tensor& forecast) {
    for (int64_t i = 0; i < truth.size(0); ++i) {
      if (static_cast<int64_t>(result_.clips.truth.size()) == o_.strips) return;
      result_.clips.truth.push_back(truth[i]);
      result_.clips.forecast.push_back(forecast[i]);
    }
  }

  nlohmann::json horizons(bool spread) const {
    nlohmann::json horizons = nlohmann::json::array();
    for (size_t h = 0; h < setting_.horizons.size(); ++h) {
      nlohmann::json rows = nlohmann::json::array();
      for (const Contest& contest : contests_) {
        for (nlohmann::json& row : contest.rows(h, spread)) rows.push_back(std::move(row));
      }
      horizons.push_back({{"frames", setting_.horizons[h]}, {"rows", rows}});
      if (!seen_.empty()) {
        add_seen_rows(horizons.back(), all_scores(contests_), at::cat(seen_), setting_.horizons[h]);
      }
    }
    return horizons;
  }

  nlohmann::json curves() const {
    nlohmann::json curves = {{"frames", nlohmann::json::array()}};
    for (int64_t k = 1; k <= setting_.longest(); ++k) curves["frames"].push_back(k);
    for (const Scores& scores : all_scores(contests_)) {
      for (const std::string& metric : scores.metrics()) curves[metric][scores.name()] = scores.curve(metric);
    }
    return curves;
  }

  const EvaluationJob& job_;
  const EvaluateOptions& o_;
  const Setting& setting_;
  const metrics::MetricSet& metrics_;
  std::vector<Futures> futures_;   // of each member
  std::vector<Contest> contests_;  // against what is real; the ceiling apart if that is not the originals
  std::optional<FieldContest> fields_;
  std::vector<at::Tensor> seen_;  // [B,N] of each batch: frames of places that the context showed; empty: nobody knows
  bool has_actions_ = false;
  SettingResult result_;
};

}  // namespace

SettingResult run_setting(const EvaluationJob& job, const Setting& setting, const metrics::MetricSet& metrics,
                          const std::function<bool(int64_t)>& progress) {
  SettingRun run(job, setting, metrics);
  const auto samples = static_cast<int64_t>(job.windows.size());
  int64_t done = 0;
  for (bool go_on = true; done < samples && go_on;) {
    const int64_t count = std::min(job.options.batch, samples - done);
    run.add(done, count);
    done += count;
    go_on = progress(done);
  }
  return run.finish(done);
}

}  // namespace convssm::evaluate
