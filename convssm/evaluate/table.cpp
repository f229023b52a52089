// The result of an evaluation as a table for a terminal: a row for each metric, a column for each forecaster.
#include <fmt/format.h>

#include "convssm/evaluate/evaluate.h"
#include "convssm/evaluate/skill_table.h"
#include "convssm/metrics/registry.h"

namespace convssm::evaluate {
namespace {

constexpr int kNameWidth = 18, kCellWidth = 19;

// `mean` and `deviation` are keys of the scores of a metric.
std::string cell(const nlohmann::json& row, const metrics::MetricInfo& metric, bool spread, const char* mean = "mean",
                 const char* deviation = "std") {
  if (!row.contains(metric.name) || row[metric.name].is_null() || !row[metric.name].contains(mean)) return "-";
  const auto text = [&](const char* key) {
    return fmt::format("{:.{}f}", row[metric.name][key].get<double>(), metric.digits);
  };
  return spread && row[metric.name].contains(deviation) ? text(mean) + " ± " + text(deviation) : text(mean);
}

// How the table is to be read: what a JSON says once for all of it.
struct Reading {
  bool ahead = true;    // frames are those after a context
  bool spread = true;   // of several chunks
  int64_t futures = 1;  // of each clip
};

std::string rows_text(const nlohmann::json& rows, const Reading& how) {
  std::string text;
  for (const metrics::MetricInfo& metric : metrics::all_metrics()) {
    if (!rows[0].contains(metric.name)) continue;
    text += fmt::format("\n  {:<{}}", metric.name + (metric.better > 0 ? " +" : " -"), kNameWidth);
    for (const auto& row : rows) text += fmt::format("{:<{}}", cell(row, metric, how.spread), kCellWidth);
    if (!rows[0][metric.name].is_object() || !rows[0][metric.name].contains("best")) continue;
    text += fmt::format("\n    {:<{}}{}", fmt::format("best of {}", how.futures), kNameWidth - 2,
                        cell(rows[0], metric, how.spread, "best", "best_std"));  // others have one future
  }
  return text;
}

// Of frames that show a place which the context showed, and of the others.
std::string seen_text(const nlohmann::json& horizon, Reading how) {
  how.spread = false;
  std::string text;
  for (const auto& [key, title] : {std::pair{"seen_before", "seen before"}, {"never_seen", "never seen"}}) {
    if (!horizon.contains(key) || horizon[key]["rows"].empty()) continue;
    const auto& part = horizon[key];
    text += fmt::format("\n {}: {:.0f}% of the frames", title, 100 * part["share"].get<double>());
    text += rows_text(part["rows"], how);
  }
  return text;
}

std::string horizon_text(const nlohmann::json& horizon, const Reading& how) {
  const std::string title = fmt::format("{} frames{}", horizon["frames"].get<int64_t>(), how.ahead ? " ahead" : "");
  std::string text = fmt::format("\n{:<{}}", title, kNameWidth + 2);
  for (const auto& row : horizon["rows"]) text += fmt::format("{:<{}}", row["name"].get<std::string>(), kCellWidth);
  return text + rows_text(horizon["rows"], how) + seen_text(horizon, how) + "\n";
}

// "[144+156 actions] 144 frames of context, with actions"
std::string setting_title(const nlohmann::json& setting, int64_t samples) {
  std::string text =
      fmt::format("\n[{}] {} frames of context", setting["name"].get<std::string>(), setting["context"].get<int64_t>());
  if (setting.contains("actions")) text += setting["actions"].get<bool>() ? ", actions given" : ", actions masked";
  const auto found = setting["samples"].get<int64_t>();
  return found == samples ? text : text + fmt::format(", {} samples so far", found);
}

std::string size_text(const nlohmann::json& protocol) {
  return protocol.contains("frame_size") ? fmt::format("frames: {}\n", protocol["frame_size"].get<std::string>()) : "";
}

std::string real_text(const nlohmann::json& protocol) {
  const std::string real = protocol.value("real", "originals");
  if (real == "reconstructions")
    return "compared with what the tokenizer makes of the clips; its ceiling with the clips\n";
  return real == "codes" ? "compared with what the tokenizer makes of the codes\n" : "";
}

// "pixels: ...; weights: squeezenet 5af43b96eefd8894, ...": what else the numbers depend on.
std::string basis_text(const nlohmann::json& protocol) {
  std::string text = fmt::format("pixels: {}", protocol["pixels"].get<std::string>()), weights;
  for (const auto& [metric, about] : protocol["metrics"].items()) {
    if (!about.contains("weights")) continue;
    for (const auto& [name, checksum] : about["weights"].items()) {
      weights += fmt::format("{}{} {}", weights.empty() ? "; weights: " : ", ", name, checksum.get<std::string>());
    }
  }
  return text + weights + "\n";
}

// The scores of fields in units, of a setting.
std::string units_text(const nlohmann::json& scores, const nlohmann::json& protocol) {
  if (!scores.contains("skill")) return "";
  const std::string weights = protocol["skill"]["weights"];
  return fmt::format("\nin the units of the data{}{}\n", weights == "none" ? "" : ", pixels weighted by the " + weights,
                     protocol["skill"].value("clipped", false)
                         ? ", of a truth that was cut to the range of its channel (data.clamp)"
                         : "") +
         skill_text(scores["skill"]);
}

// "64 clips", or "64 windows of 2 clips".
std::string samples_text(const nlohmann::json& protocol) {
  const auto plural = [](int64_t count, const char* word) {
    return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
  };
  const auto samples = protocol["samples"].get<int64_t>(), clips = protocol.value("clips", samples);
  if (clips == samples) return plural(samples, "clip");
  return fmt::format("{} of {}", plural(samples, "window"), plural(clips, "clip"));
}

}  // namespace

std::string table_text(const nlohmann::json& metrics) {
  const auto& protocol = metrics["protocol"];
  const auto samples = protocol["samples"].get<int64_t>(), chunk = protocol["chunk"].get<int64_t>();
  const bool several = metrics.contains("settings");
  const Reading how{several || protocol["context"].get<int64_t>() > 0, samples > chunk,
                    protocol.value("futures", int64_t{1})};
  std::string text = samples_text(protocol);
  if (!several) text += fmt::format(", {} frames of context", protocol["context"].get<int64_t>());
  if (how.futures > 1) text += fmt::format(", {} futures of each", how.futures);
  text += fmt::format("; mean{}; + more is better, - less is\n{}{}{}",
                      how.spread ? fmt::format(" ± spread between chunks of {}", chunk) : "", basis_text(protocol),
                      size_text(protocol), real_text(protocol));
  if (!several) {
    for (const auto& horizon : metrics["horizons"]) text += horizon_text(horizon, how);
    return text + units_text(metrics, protocol);
  }
  for (const auto& setting : metrics["settings"]) {
    text += setting_title(setting, samples);
    for (const auto& horizon : setting["horizons"]) text += horizon_text(horizon, how);
    text += units_text(setting, protocol);
  }
  return text;
}

}  // namespace convssm::evaluate
