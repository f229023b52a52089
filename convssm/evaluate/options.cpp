// The `evaluate` section of a config. A context with horizons is one setting; so there is one way to evaluate.
#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/option_reader.h"
#include "convssm/evaluate/evaluate.h"
#include "convssm/evaluate/references.h"

namespace convssm::evaluate {
namespace {

Real parse_real(const std::string& text) {
  if (text == "originals") return Real::originals;
  if (text == "reconstructions") return Real::reconstructions;
  fail(ErrorKind::usage, "[evaluate] real must be originals or reconstructions, got '{}'", text);
}

void require(bool ok, const char* key, const char* expected, int64_t found) {
  if (!ok) fail(ErrorKind::usage, "[evaluate] {} must be {}, got {}", key, expected, found);
}

// The one that context and horizons are, or the list. Null is as good as nothing: a command line cannot remove what the
// config of a run says.
std::vector<Setting> read_protocol(OptionReader& read, const nlohmann::json& json) {
  const auto given = [&](const char* key) { return json.contains(key); };
  Setting one;
  read("context", one.context);
  read("horizons", one.horizons);
  std::vector<nlohmann::json> list;
  read("settings", list);
  if (!given("settings")) {
    require(one.context > 0, "context", "at least 1 frame", one.context);
    require(!one.horizons.empty(), "horizons", "a list of frame counts", 0);
    for (const int64_t frames : one.horizons) require(frames > 0, "horizons", "positive", frames);
    return {one};
  }
  for (const char* key : {"horizons", "context"}) {
    if (!given(key)) continue;
    fail(ErrorKind::usage,
         "[evaluate] {} and settings are both given; every setting has a context and frames of its own: leave {} out, "
         "on "
         "the command line with evaluate.{}=null",
         key, key, key);
  }
  return read_settings(list);
}

nlohmann::json without_nulls(nlohmann::json json) {
  for (const char* key : {"context", "horizons", "settings"}) {
    if (json.is_object() && json.contains(key) && json[key].is_null()) json.erase(key);
  }
  return json;
}

}  // namespace

const char* name(Real real) { return real == Real::originals ? "originals" : "reconstructions"; }

EvaluateOptions EvaluateOptions::from_json(const nlohmann::json& section) {
  const nlohmann::json json = without_nulls(section);
  EvaluateOptions o;
  OptionReader read("evaluate", json);
  o.settings = read_protocol(read, json);
  read("frames", o.frames);
  read("samples", o.samples);
  read("futures", o.futures);
  read("stride", o.stride);
  read("chunk", o.chunk);
  read("batch", o.batch);
  read("strips", o.strips);
  read("quantize", o.quantize);
  read("real", [&](const std::string& text) { o.real = parse_real(text); });
  read("metrics", o.metrics);
  read("seed", o.seed);
  read("perturb", o.perturb);
  read("skill", [&](const std::string& text) { o.skill.skill = parse_skill(text); });
  nlohmann::json thresholds = nlohmann::json::object();
  read("thresholds", thresholds);
  o.skill.thresholds = read_thresholds(thresholds);
  read("fss_windows", o.skill.fss_windows);
  read("references", o.references);
  read.finish();
  require(o.frames > 0, "frames", "positive", o.frames);
  require(o.samples > 0, "samples", "positive", o.samples);
  require(o.futures > 0, "futures", "positive", o.futures);
  if (!(o.perturb >= 0)) fail(ErrorKind::usage, "[evaluate] perturb must be 0 or positive, got {}", o.perturb);
  if (o.perturb > 0 && o.futures == 1) {
    fail(ErrorKind::usage,
         "[evaluate] perturb changes all futures of a clip but the first, and there is one; set evaluate.futures to 2 "
         "or "
         "more");
  }
  require(o.stride >= 0, "stride", "0 or positive", o.stride);
  require(o.chunk > 0, "chunk", "positive", o.chunk);
  require(o.batch > 0, "batch", "positive", o.batch);
  require(o.strips >= 0, "strips", "0 or positive", o.strips);
  for (const int64_t window : o.skill.fss_windows) require(window > 0, "fss_windows", "at least 1 pixel", window);
  for (const std::string& metric : o.metrics) metrics::find_metric(metric);
  for (const std::string& reference : o.references) find_reference(reference);
  return o;
}

nlohmann::json EvaluateOptions::to_json() const {
  nlohmann::json json = {{"samples", samples}, {"futures", futures},   {"perturb", perturb}, {"stride", stride},
                         {"chunk", chunk},     {"batch", batch},       {"strips", strips},   {"real", name(real)},
                         {"metrics", metrics}, {"quantize", quantize}, {"seed", seed}};
  json.update(skill.to_json());
  json["references"] = references;
  if (settings[0].name.empty()) {
    json["context"] = settings[0].context;
    json["horizons"] = settings[0].horizons;
    return json;
  }
  for (const Setting& setting : settings) json["settings"].push_back(setting.to_json());
  return json;
}

}  // namespace convssm::evaluate
