#include "convssm/evaluate/skill_options.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"
#include "convssm/metrics/field_weights.h"

namespace convssm::evaluate {
namespace {

constexpr double kRounding = 5e-7;  // of frames in [-1,1]

// A value at the threshold is an event, also after its way through a frame of float32.
std::vector<double> lowered(const std::vector<double>& thresholds, const data::Channel& channel) {
  std::vector<double> out;
  const double step = 0.5 * kRounding * (channel.scaled(channel.high) - channel.scaled(channel.low));
  for (const double x : thresholds) {
    const bool logarithm = channel.log_offset > 0 && x + channel.log_offset > 0;
    out.push_back(logarithm ? (x + channel.log_offset) * std::exp(-step) - channel.log_offset : x - step);
  }
  return out;
}

// A clipped truth shows no value above its range, and none below it: an event there would never be seen.
void check_clipped(const std::string& name, const std::vector<double>& thresholds, const data::Channel& channel) {
  for (const double x : thresholds) {
    if (x > channel.low && x <= channel.high) continue;
    fail(ErrorKind::usage,
         "[evaluate] the threshold {} of {} is not within its range: data.clamp cut its values to {} to {}, so the "
         "truth "
         "cannot be told there; take one above {} and up to {}",
         x, name, channel.low, channel.high, channel.low, channel.high);
  }
}

}  // namespace

const char* name(Skill skill) { return skill == Skill::automatic ? "auto" : skill == Skill::on ? "on" : "off"; }

Skill parse_skill(const std::string& text) {
  for (const Skill skill : {Skill::automatic, Skill::on, Skill::off}) {
    if (text == name(skill)) return skill;
  }
  fail(ErrorKind::usage, "[evaluate] skill must be auto, on or off, got '{}'", text);
}

bool SkillOptions::wanted(const data::Dataset& dataset) const {
  if (skill == Skill::off || !dataset.codes().none()) return false;
  return skill == Skill::on || !dataset.format().is_8_bit();
}

nlohmann::json SkillOptions::to_json() const {
  return {{"skill", name(skill)}, {"thresholds", thresholds}, {"fss_windows", fss_windows}};
}

std::map<std::string, std::vector<double>> read_thresholds(const nlohmann::json& json) {
  std::map<std::string, std::vector<double>> all;
  for (const auto& [channel, values] : json.items()) {
    const bool list = values.is_array() && !values.empty() &&
                      std::ranges::all_of(values, [](const nlohmann::json& value) { return value.is_number(); });
    if (!list && !values.is_number()) {
      fail(ErrorKind::usage, "[evaluate] thresholds of {} must be numbers in its units, such as [0.1, 1, 5], got {}",
           channel, values.dump());
    }
    std::vector<double>& own = all[channel];
    own = list ? values.get<std::vector<double>>() : std::vector<double>{values.get<double>()};
    std::ranges::sort(own);
    own.erase(std::unique(own.begin(), own.end()), own.end());
  }
  return all;
}

Fields fields_of(const data::Dataset& dataset, const SkillOptions& options) {
  Fields fields{dataset.format(), {}, options.fss_windows};
  std::vector<std::string> names;
  for (const data::Channel& channel : fields.format.channels) {
    names.push_back(channel.name.empty() ? fmt::format("channel {}", names.size()) : channel.name);
    const auto own = options.thresholds.find(names.back());
    const std::vector<double> thresholds = own == options.thresholds.end() ? std::vector<double>() : own->second;
    if (fields.format.clamp) check_clipped(names.back(), thresholds, channel);
    fields.variables.push_back({names.back(), channel.units, thresholds, lowered(thresholds, channel)});
  }
  for (const auto& [channel, values] : options.thresholds) {
    if (std::ranges::find(names, channel) == names.end()) {
      fail_unknown("[evaluate] thresholds of an unknown channel", channel, names);
    }
  }
  const data::Axes* axes = dataset.axes();
  if (axes == nullptr || !axes->has_latitudes()) return fields;
  if (static_cast<int64_t>(axes->rows.values.size()) != fields.format.height) {
    fail(ErrorKind::data, "[evaluate] the frames have {} rows, their latitudes are of {}", fields.format.height,
         axes->rows.values.size());
  }
  fields.rows = metrics::latitude_weights(axes->rows.values);
  return fields;
}

}  // namespace convssm::evaluate
