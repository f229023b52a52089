// The result of an evaluation as a table for a terminal: a row for each metric, a column for each forecaster.
#include <fmt/format.h>

#include "convssm/evaluate/evaluate.h"
#include "convssm/metrics/registry.h"

namespace convssm::evaluate {
namespace {

constexpr int kNameWidth = 18, kCellWidth = 19;

std::string cell(const nlohmann::json& row, const metrics::MetricInfo& metric, bool spread) {
  if (!row.contains(metric.name) || row[metric.name].is_null()) return "-";
  const auto text = [&](const char* key) {
    return fmt::format("{:.{}f}", row[metric.name][key].get<double>(), metric.digits);
  };
  return spread && row[metric.name].contains("std") ? text("mean") + " ± " + text("std") : text("mean");
}

std::string rows_text(const nlohmann::json& rows, bool spread) {
  std::string text;
  for (const metrics::MetricInfo& metric : metrics::all_metrics()) {
    if (!rows[0].contains(metric.name)) continue;
    text += fmt::format("\n  {:<{}}", metric.name + (metric.better > 0 ? " +" : " -"), kNameWidth);
    for (const auto& row : rows) text += fmt::format("{:<{}}", cell(row, metric, spread), kCellWidth);
  }
  return text;
}

// Of frames that show a place which the context showed, and of the others.
std::string seen_text(const nlohmann::json& horizon) {
  std::string text;
  for (const auto& [key, title] : {std::pair{"seen_before", "seen before"}, {"never_seen", "never seen"}}) {
    if (!horizon.contains(key) || horizon[key]["rows"].empty()) continue;
    const auto& part = horizon[key];
    text += fmt::format("\n {}: {:.0f}% of the frames", title, 100 * part["share"].get<double>());
    text += rows_text(part["rows"], false);
  }
  return text;
}

std::string horizon_text(const nlohmann::json& horizon, bool ahead, bool spread) {
  const std::string title = fmt::format("{} frames{}", horizon["frames"].get<int64_t>(), ahead ? " ahead" : "");
  std::string text = fmt::format("\n{:<{}}", title, kNameWidth + 2);
  for (const auto& row : horizon["rows"]) text += fmt::format("{:<{}}", row["name"].get<std::string>(), kCellWidth);
  return text + rows_text(horizon["rows"], spread) + seen_text(horizon) + "\n";
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
  const bool spread = samples > chunk;  // one chunk has none
  std::string text = fmt::format("{}, {} frames of context; mean{}; + more is better, - less is\n",
                                 samples_text(protocol), protocol["context"].get<int64_t>(),
                                 spread ? fmt::format(" ± spread between chunks of {}", chunk) : "");
  text += basis_text(protocol);
  for (const auto& horizon : metrics["horizons"]) {
    text += horizon_text(horizon, protocol["context"].get<int64_t>() > 0, spread);
  }
  return text;
}

}  // namespace convssm::evaluate
