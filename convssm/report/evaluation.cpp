// metrics.json as a table over horizons and as charts over the generated frames, of each setting.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "convssm/report/chart.h"
#include "convssm/report/html.h"
#include "convssm/report/numbers.h"
#include "convssm/report/score_table.h"
#include "convssm/report/scores.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

using nlohmann::json;

// How the codes of a tokenizer are used.
std::string codes_text(const json& metrics) {
  if (!metrics.is_object() || !metrics.contains("codes") || !metrics["codes"].is_object()) return "";
  const json& codes = metrics["codes"];
  const auto used = number_at(codes, "used"), size = number_at(codes, "size"),
             perplexity = number_at(codes, "perplexity");
  if (!used || !size || !perplexity) return "";
  return fmt::format("<p>{:.1f}% of {:.0f} codes in use, perplexity {:.1f}.</p>\n", 100 * *used, *size, *perplexity);
}

std::string protocol_text(const json& metrics) {
  if (!metrics.contains("protocol") || !metrics["protocol"].is_object()) return "";
  std::string out;
  for (const auto& [key, value] : metrics["protocol"].items()) {
    if (value.is_structured()) continue;
    const std::string text = value.is_string()    ? value.get<std::string>()
                             : value.is_boolean() ? (value.get<bool>() ? "yes" : "no")
                                                  : value.dump(-1, ' ', false, json::error_handler_t::replace);
    out += (out.empty() ? "" : " · ") + escape(key) + " " + escape(text);
  }
  return out.empty() ? "" : "<p class=\"soft small\">" + out + "</p>\n";
}

// Which checkpoint the numbers are of, and whether there is a newer one.
std::string step_text(const RunView& run) {
  const auto step = scored_step(run.metrics);
  if (!step) return "";
  std::string text = fmt::format("Scores of the checkpoint of step {}.", grouped(*step));
  if (run.newest_step && *run.newest_step > *step) {
    text = fmt::format("<b>{} The newest is that of step {}: run <code>convssm evaluate</code> again.</b>", text,
                       grouped(*run.newest_step));
  }
  return "<p>" + text + "</p>\n";
}

std::string as_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// What each metric is, with the checksums of its weights, and what was left out.
std::string definitions(const json& metrics) {
  if (!metrics.contains("protocol") || !metrics["protocol"].is_object()) return "";
  const json& protocol = metrics["protocol"];
  const json known = protocol.value("metrics", json::object());
  std::string lines;
  for (const auto& [name, about] : known.items()) {
    if (!about.is_object()) continue;
    lines += fmt::format("<li><b>{}</b>: {}; takes {}; as {}", escape(name), escape(text_at(about, "definition")),
                         escape(text_at(about, "input")), escape(text_at(about, "reference")));
    if (about.contains("weights")) lines += "; weights " + escape(as_text(about["weights"]));
    lines += "</li>\n";
  }
  for (const json& line : array_at(protocol, "left_out")) {
    lines += "<li class=\"soft\">left out: " + escape(as_text(line)) + "</li>\n";
  }
  if (lines.empty()) return "";
  return "<details><summary>What the metrics are</summary><ul>\n" + lines + "</ul></details>\n";
}

std::vector<Point> horizon_points(const json& frames, const json& values) {
  std::vector<Point> points;
  for (size_t i = 0; values.is_array() && i < std::min(frames.size(), values.size()); ++i) {
    if (!frames[i].is_number()) continue;
    points.push_back({frames[i].get<double>(), values[i].is_number() ? values[i].get<double>() : std::nan("")});
  }
  return points;
}

// `id` tells charts of several settings apart.
std::string horizon_charts(const json& scores, const std::string& model, const std::string& id) {
  if (!scores.is_object() || !scores.contains("curves") || !scores["curves"].is_object()) return "";
  const json& curves = scores["curves"];
  const json frames = array_at(curves, "frames");
  std::vector<std::string> names;
  for (const auto& [metric, owners] : curves.items()) {
    if (owners.is_object()) names.push_back(metric);
  }
  std::string out;
  for (const std::string& metric : in_usual_order(names)) {
    const json& owners = curves[metric];
    const MetricStyle style = metric_style(metric);
    Chart chart{id + metric, style.title + " over the horizon", style.hint, "generated frame", Scale::linear, {}};
    int color = 0;
    // The model first, baselines dashed behind it.
    for (const bool models : {true, false}) {
      for (const auto& [owner, values] : owners.items()) {
        if ((owner == model) != models) continue;
        chart.lines.push_back(
            {owner, min_max(horizon_points(frames, values), 400), color++, models ? Stroke::solid : Stroke::dashed});
      }
    }
    out += draw(chart);
  }
  return out.empty() ? "" : "<div class=\"charts\">\n" + out + "</div>\n";
}

// "144 frames of context, actions given"
std::string about_setting(const json& setting) {
  std::vector<std::string> parts;
  if (const auto context = number_at(setting, "context")) {
    parts.push_back(fmt::format("{} frames of context", short_number(*context)));
  }
  if (const auto samples = number_at(setting, "samples")) parts.push_back(fmt::format("{:.0f} samples", *samples));
  const json actions = setting.value("actions", json());
  if (actions.is_boolean()) parts.push_back(actions.get<bool>() ? "actions given" : "actions masked");
  return fmt::format("<p class=\"soft small\">{}</p>\n", fmt::join(parts, " · "));
}

std::string setting_part(const RunView& run, const ScoredSetting& setting, const json& protocol, size_t number) {
  std::string model = text_at(protocol, "model");
  if (model.empty()) model = "model";
  const std::string results =
      score_table(*setting.scores, protocol) +
      horizon_charts(*setting.scores, model, number == 0 ? "horizon-" : fmt::format("horizon-{}-", number + 1)) +
      skill_part(run, *setting.scores, model, number);
  if (results.empty() || setting.name.empty()) return results;
  return fmt::format("<h3>{}</h3>\n", escape(setting.name)) + about_setting(*setting.scores) + results;
}

}  // namespace

std::string evaluation(const RunView& run) {
  const json protocol = run.metrics.is_object() ? run.metrics.value("protocol", json()) : json();
  std::string results;
  const auto settings = scored_settings(run.metrics);
  for (size_t i = 0; i < settings.size(); ++i) results += setting_part(run, settings[i], protocol, i);
  results += codes_text(run.metrics);
  return section(
      "evaluation", "Evaluation",
      results.empty() ? "" : step_text(run) + protocol_text(run.metrics) + results + definitions(run.metrics));
}

}  // namespace convssm::report
