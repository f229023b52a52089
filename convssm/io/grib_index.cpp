// Fields are sorted into groups of one name, level type, step type and grid; then a group is named by as much of these as tells it from
// others of its name.
#include "convssm/io/grib_index.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <unordered_map>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"

namespace convssm::io {
namespace {

constexpr const char* axis_names[grib_axes] = {"time", "step", "number", "level"};
constexpr uint64_t bytes_of_field = 200;  // of the index, about
constexpr size_t most_kinds = 10'000;

struct GroupKey {
  std::string name, level_type, step_type;
  size_t grid;
  auto operator<=>(const GroupKey&) const = default;
};

class GribIndexer {
 public:
  explicit GribIndexer(const Source& source) : source_(source) {}

  GribIndex run() {
    for_each_grib_field(source_, [&](GribField field, const GribHeader& header) { add(std::move(field), header); });
    std::set<std::string> names;
    for (auto& [key, variable] : groups_) {
      variable.name = name_of(key);
      while (!names.insert(variable.name).second) variable.name += "_2";
      finish(variable);
      index_.variables.push_back(std::move(variable));
    }
    return std::move(index_);
  }

 private:
  void add(GribField field, const GribHeader& header) {
    require_file_memory(source_.name(), "the index of its fields", (index_.fields.size() + 1) * bytes_of_field);
    const GribKeys& keys = keys_of(field, header);
    const auto [at, is_new] = grids_.try_emplace(header.grid, index_.grids.size());
    if (is_new) index_.grids.push_back(grib_grid(source_.name(), field.offset, grib_message(source_, field)));
    GribVariable& variable = groups_[{keys.name, keys.level_type, keys.step_type, at->second}];
    if (variable.fields.empty()) variable.keys = keys, variable.grid = at->second;
    variable.wide = variable.wide || keys.wide;
    const GribPoint point{static_cast<double>(header.time), static_cast<double>(keys.step),
                          static_cast<double>(keys.number), keys.level};
    variable.fields.emplace_back(point, index_.fields.size());
    index_.fields.push_back(std::move(field));
  }

  // To eccodes a name is a search through its tables, and most fields are of a kind that came before.
  const GribKeys& keys_of(const GribField& field, const GribHeader& header) {
    if (const auto known = kinds_.find(header.same); known != kinds_.end()) return known->second;
    if (kinds_.size() >= most_kinds) kinds_.clear();
    return kinds_.emplace(header.same, grib_keys(source_.name(), field.offset, header.message)).first->second;
  }

  std::string name_of(const GroupKey& key) const {
    std::set<std::string> levels, steps;
    std::set<size_t> grids;
    for (const auto& [other, variable] : groups_) {
      if (other.name != key.name) continue;
      levels.insert(other.level_type);
      if (other.level_type == key.level_type) steps.insert(other.step_type);
      if (other.level_type == key.level_type && other.step_type == key.step_type) grids.insert(other.grid);
    }
    std::string name = key.name;
    if (levels.size() > 1) name += "_" + (key.level_type.empty() ? "unknown" : key.level_type);
    if (steps.size() > 1) name += "_" + (key.step_type.empty() ? "unknown" : key.step_type);
    if (grids.size() > 1 && *grids.begin() != key.grid) name += fmt::format("_grid_{}", key.grid + 1);
    return name;
  }

  // Forecasts of which no two are of one time are a series: their steps are added to the times that they start from.
  static void join_steps(GribVariable& variable) {
    std::set<GribPoint> starts, series;
    for (const auto& [point, number] : variable.fields) {
      starts.insert(point);
      series.insert({point[0] + point[1], 0, point[2], point[3]});
    }
    if (starts.size() != series.size()) return;
    variable.joined = true;
    for (auto& [point, number] : variable.fields) point[0] += point[1], point[1] = 0;
  }

  static void finish(GribVariable& variable) {
    join_steps(variable);
    std::ranges::sort(variable.fields);
    for (size_t axis = 0; axis < grib_axes; ++axis) {
      std::set<double> values;
      for (const auto& [point, number] : variable.fields) values.insert(point[axis]);
      variable.values[axis].assign(values.begin(), values.end());
    }
  }

  const Source& source_;
  GribIndex index_;
  std::map<std::string, size_t> grids_;              // by their sections
  std::unordered_map<std::string, GribKeys> kinds_;  // by what their headers have in common
  std::map<GroupKey, GribVariable> groups_;
};

std::string time_text(double seconds) {
  namespace chrono = std::chrono;
  const chrono::sys_seconds time{chrono::seconds(static_cast<int64_t>(seconds))};
  const auto day = chrono::floor<chrono::days>(time);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

}  // namespace

GribIndex index_grib(const Source& source) { return GribIndexer(source).run(); }

std::string grib_point_text(const GribVariable& variable, const GribPoint& point) {
  std::string text;
  for (size_t axis = 0; axis < grib_axes; ++axis) {
    if (variable.values[axis].size() < 2) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", axis_names[axis],
                        axis == 0 ? time_text(point[0]) : fmt::format("{}", point[axis]));
    if (axis == 1) text += " s";
  }
  return text;
}

}  // namespace convssm::io
