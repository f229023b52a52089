// Setting after setting, each over the same windows of the test clips. A context with several horizons is one setting, and
// what it gives is written without the list around it.
#include "convssm/evaluate/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "convssm/base/error.h"
#include "convssm/evaluate/setting_run.h"
#include "convssm/models/forecaster.h"

namespace convssm::evaluate {
namespace {

// Error(usage) that says what to change.
[[noreturn]] void fail_short(const data::Dataset& dataset, const Setting& setting) {
  const int64_t longest = dataset.longest(data::Split::test);
  const std::string which = dataset.short_clips(data::Split::test, setting.frames());
  const std::string end = which.empty() ? "" : ". " + which;
  if (setting.name.empty()) {
    fail(
        ErrorKind::usage,
        "[evaluate] context {} and horizon {} ask for test clips of {} frames, they have {}; set evaluate.horizons and "
        "evaluate.context to less{}",
        setting.context, setting.longest(), setting.frames(), longest, end);
  }
  if (setting.context >= longest) {
    fail(ErrorKind::usage,
         "[evaluate] setting '{}' asks for a context of {} frames and {} after it, test clips have {} in all; set its "
         "context in evaluate.settings to less{}",
         setting.name, setting.context, setting.longest(), longest, end);
  }
  fail(ErrorKind::usage,
       "[evaluate] setting '{}', context {} and frames {}, asks for test clips of {} frames, they have {}; set its "
       "context or frames in evaluate.settings to less{}",
       setting.name, setting.context, setting.longest(), setting.frames(), longest, end);
}

// What can be evaluated in all settings, so that these see the same clips; an error if a clip is too short.
std::vector<Window> find_windows(const data::Dataset& dataset, const EvaluateOptions& o) {
  if (dataset.size(data::Split::test) == 0) fail(ErrorKind::data, "the dataset has no test clips");
  int64_t frames = 0;
  for (const Setting& setting : o.settings) {
    if (dataset.longest(data::Split::test) < setting.frames()) fail_short(dataset, setting);
    frames = std::max(frames, setting.frames());
  }
  return test_windows(dataset, frames, o.stride, o.samples);
}

const std::vector<std::string>& metrics_of(const EvaluateOptions& o, const Setting& setting) {
  return setting.metrics.empty() ? o.metrics : setting.metrics;
}

// How fields are scored in units, and what the references are made of.
nlohmann::json describe_skill(const EvaluationJob& job) {
  return {{"weights", job.fields->rows.defined() ? "cosine of latitude" : "none"},
          {"clipped", job.fields->format.clamp},
          {"event", "value >= threshold"},
          {"acc", job.references.usual() == nullptr ? "none: there is no climatology" : "uncentred, mean over fields"}};
}

nlohmann::json describe_protocol(const EvaluationJob& job, const std::vector<metrics::MetricSet>& metrics) {
  nlohmann::json protocol = job.options.to_json();
  protocol["futures"] = 0;
  for (const Member& member : job.members) protocol["futures"] = protocol["futures"].get<int64_t>() + member.futures;
  protocol["split"] = "test";
  protocol["model"] = job.name;
  protocol["real"] = job.truth.name();
  protocol["pixels"] = job.options.quantize ? "8 bits, cut down, then [0,1]" : "float32 in [0,1]";
  protocol["precision"] = generate::name(job.engine.precision);
  protocol["metrics"] = nlohmann::json::object();
  protocol["left_out"] = job.references.left_out;
  protocol["references"] = nlohmann::json::object();
  for (const NamedReference& one : job.references.all) {
    const std::string about = one.reference->about();
    protocol["references"][one.info->name] = about.empty() ? one.info->summary : about;
  }
  if (job.fields != nullptr) protocol["skill"] = describe_skill(job);
  if (job.fields == nullptr) {
    for (const char* key : {"thresholds", "fss_windows", "skill"}) protocol.erase(key);
  }
  std::set<std::string> left_out;
  for (const metrics::MetricSet& set : metrics) {
    protocol["metrics"].update(set.description());
    for (const std::string& line : set.left_out()) {
      if (left_out.insert(line).second) protocol["left_out"].push_back(line);
    }
  }
  return protocol;
}

// What holds for all settings, of the first.
void move_to_protocol(nlohmann::json& protocol, const nlohmann::json& found) {
  for (const char* key : {"samples", "clips", "engine"}) protocol[key] = found.at(key);
}

nlohmann::json join(nlohmann::json protocol, const EvaluateOptions& o, std::vector<SettingResult>& results) {
  move_to_protocol(protocol, results[0].json);
  if (o.settings[0].name.empty()) {
    nlohmann::json& one = results[0].json;
    protocol["identical_frames"] = one["identical_frames"];
    nlohmann::json all = {{"protocol", protocol}, {"horizons", one["horizons"]}, {"curves", one["curves"]}};
    if (one.contains("skill")) all["skill"] = one["skill"];
    return all;
  }
  nlohmann::json settings = nlohmann::json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    nlohmann::json& json = results[i].json;
    json["name"] = o.settings[i].name;
    json["context"] = o.settings[i].context;
    json["frames"] = o.settings[i].longest();
    json.erase("engine");
    settings.push_back(std::move(json));
  }
  return {{"protocol", protocol}, {"settings", settings}};
}

}  // namespace

int64_t count_samples(const data::Dataset& dataset, const EvaluateOptions& o) {
  return static_cast<int64_t>(find_windows(dataset, o).size() * o.settings.size());
}

std::vector<metrics::MetricSet> make_metrics(const EvaluateOptions& o, const data::FrameFormat& frames,
                                             const metrics::WeightFolder& weights, const metrics::I3dOptions& i3d) {
  std::vector<metrics::MetricSet> sets;
  const auto length = [](const Setting& setting) { return setting.context + setting.shortest(); };
  for (const Setting& setting : o.settings) {
    const auto same = std::ranges::find_if(o.settings, [&](const Setting& other) {
      return length(other) == length(setting) && metrics_of(o, other) == metrics_of(o, setting);
    });
    const auto place = static_cast<size_t>(same - o.settings.begin());
    if (place < sets.size()) {
      sets.push_back(sets[place]);  // its networks are read once
      continue;
    }
    const metrics::ClipSize size{length(setting), frames.depth(), frames.height, frames.width, o.quantize};
    sets.emplace_back(metrics_of(o, setting), weights, size, i3d);
  }
  return sets;
}

Evaluation evaluate(models::Model& model, const data::Dataset& dataset, const EvaluateOptions& o,
                    const std::vector<metrics::MetricSet>& metrics, const std::string& name,
                    const std::function<bool(int64_t)>& progress, const generate::PredictorOptions& engine,
                    const std::vector<models::Model*>& also) {
  if (metrics.size() != o.settings.size()) {
    fail(ErrorKind::usage, "[evaluate] expected the metrics of {} settings, got those of {}; see make_metrics",
         o.settings.size(), metrics.size());
  }
  at::NoGradGuard no_grad;
  std::vector<models::Model*> models{&model};
  models.insert(models.end(), also.begin(), also.end());
  std::vector<std::unique_ptr<const models::EvalMode>> modes;
  std::vector<Member> members;
  for (models::Model* one : models) {
    modes.push_back(std::make_unique<const models::EvalMode>(*one));
    const bool differ = models::forecaster_of(*one).draws() || o.perturb > 0;
    members.push_back({one, differ ? o.futures : 1});
  }
  const std::vector<Window> windows = find_windows(dataset, o);
  const Truth truth(model, dataset, o.real);
  const bool in_units = o.skill.wanted(dataset);
  const Fields fields = in_units ? fields_of(dataset, o.skill) : Fields();
  const References references = make_references(o.references, in_units, dataset);
  const EvaluationJob job{model, dataset, o,       truth,      windows,
                          name,  engine,  members, references, in_units ? &fields : nullptr};
  std::vector<SettingResult> results;
  int64_t before = 0;
  bool go_on = true;
  for (size_t i = 0; i < o.settings.size() && go_on; ++i) {
    results.push_back(run_setting(job, o.settings[i], metrics[i], [&](int64_t done) {
      go_on = !progress || progress(before + done);
      return go_on;
    }));
    before += static_cast<int64_t>(windows.size());
  }
  Evaluation all;
  all.metrics = join(describe_protocol(job, metrics), o, results);
  for (SettingResult& result : results) {
    all.clips.push_back(std::move(result.clips));
    all.error_maps.push_back(std::move(result.error_maps));
  }
  return all;
}

}  // namespace convssm::evaluate
