#include "convssm/data/field_axes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

#include "convssm/base/error.h"
#include "convssm/data/numbers.h"

namespace convssm::data {
namespace {

constexpr double kMostSeconds = 3e13;  // a million years

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

template <size_t N>
bool is_one_of(const std::string& text, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, text) != names.end();
}

std::string without_groups(const std::string& name) { return name.substr(name.rfind('/') + 1); }

bool is_degrees(const std::string& units, const char* side, const char* letter) {
  const std::string text = lower(units);
  for (const char* degree : {"degree", "degrees"}) {
    for (const char* joint : {"_", ""}) {
      if (text == std::string(degree) + joint + side || text == std::string(degree) + joint + letter) return true;
    }
  }
  return false;
}

// Whether degrees that do not say to where, or numbers without units, are of this kind.
bool is_angle(const io::GridVariable& coordinate, const char* standard, const char* brief) {
  const std::string units = lower(attribute_text(coordinate.attributes, "units")),
                    name = lower(without_groups(coordinate.name));
  if (!units.empty() && units != "degrees" && units != "degree") return false;
  const std::string own = attribute_text(coordinate.attributes, "standard_name");
  return own == standard || (own.empty() && (name == standard || name == brief));
}

AxisKind kind_by_attributes(const io::GridVariable& coordinate) {
  const std::string axis = attribute_text(coordinate.attributes, "axis");
  if (axis == "T") return AxisKind::time;
  if (axis == "Z") return AxisKind::level;
  if (axis == "Y") return AxisKind::rows;
  if (axis == "X") return AxisKind::columns;
  const std::string standard = attribute_text(coordinate.attributes, "standard_name");
  if (standard == "time") return AxisKind::time;
  if (standard == "latitude" || standard == "projection_y_coordinate" || standard == "grid_latitude")
    return AxisKind::rows;
  if (standard == "longitude" || standard == "projection_x_coordinate" || standard == "grid_longitude") {
    return AxisKind::columns;
  }
  const std::string units = attribute_text(coordinate.attributes, "units");
  if (io::CfTime::is_time(units)) return AxisKind::time;
  if (is_degrees(units, "north", "n")) return AxisKind::rows;
  if (is_degrees(units, "east", "e")) return AxisKind::columns;
  if (coordinate.attributes.contains("positive") || standard == "air_pressure" || standard == "height" ||
      standard == "depth") {
    return AxisKind::level;
  }
  return AxisKind::none;
}

AxisKind kind_by_name(const std::string& name) {
  static constexpr std::array<std::string_view, 4> times{"time", "valid_time", "t", "date"};
  static constexpr std::array<std::string_view, 13> levels{
      "level",    "lev", "plev",           "pressure", "isobaricinhpa", "height", "depth",
      "altitude", "z",   "pressure_level", "hybrid",   "model_level",   "deptht"};
  static constexpr std::array<std::string_view, 7> rows{"latitude", "lat",         "y",   "rlat",
                                                        "nav_lat",  "south_north", "nlat"};
  static constexpr std::array<std::string_view, 7> columns{"longitude", "lon",       "x",   "rlon",
                                                           "nav_lon",   "west_east", "nlon"};
  const std::string own = lower(without_groups(name));
  if (is_one_of(own, times)) return AxisKind::time;
  if (is_one_of(own, levels)) return AxisKind::level;
  if (is_one_of(own, rows)) return AxisKind::rows;
  if (is_one_of(own, columns)) return AxisKind::columns;
  return AxisKind::none;
}

const std::string& dimension_name(const io::GridVariable& variable, int d) {
  return variable.dimensions[static_cast<size_t>(d)];
}

// A single number that says when a variable without a dimension of time is: one of its `coordinates`, or the only standard time of
// the file.
const io::GridVariable* single_time(const io::GridFile& file, const io::GridVariable& variable) {
  const std::string named = " " + attribute_text(variable.attributes, "coordinates") + " ";
  const io::GridVariable* found = nullptr;
  for (const io::GridVariable& other : file.variables()) {
    if (!io::CfTime::is_time(attribute_text(other.attributes, "units"))) continue;
    const bool single = other.shape.empty() || (other.shape.size() == 1 && other.shape[0] == 1);
    if (!single) continue;
    if (named.find(" " + without_groups(other.name) + " ") != std::string::npos) return &other;
    const bool standard =
        attribute_text(other.attributes, "standard_name") == "time" || without_groups(other.name) == "time";
    if (standard && found == nullptr) found = &other;
  }
  return found;
}

}  // namespace

std::string attribute_text(const io::GridAttributes& attributes, const char* name) {
  const auto found = attributes.find(name);
  return found != attributes.end() && found->second.is_text() ? found->second.text : "";
}

double attribute_number(const io::GridAttributes& attributes, const char* name, double otherwise) {
  const auto found = attributes.find(name);
  return found != attributes.end() && !found->second.is_text() ? found->second.numbers[0] : otherwise;
}

AxisKind kind_of_axis(const std::string& name, const io::GridVariable* coordinate) {
  const AxisKind kind = coordinate ? kind_by_attributes(*coordinate) : AxisKind::none;
  return kind == AxisKind::none ? kind_by_name(name) : kind;
}

const io::GridVariable* coordinate_of(const io::GridFile& file, const io::GridVariable& variable, int d) {
  const io::GridVariable* found = file.find(dimension_name(variable, d));
  return found && found->shape.size() == 1 && found->shape[0] == variable.shape[static_cast<size_t>(d)] ? found
                                                                                                        : nullptr;
}

FieldDimensions find_dimensions(const io::GridFile& file, const io::GridVariable& variable) {
  FieldDimensions dims;
  const int rank = static_cast<int>(variable.shape.size());
  for (int d = 0; d < rank; ++d) {
    const AxisKind kind = kind_of_axis(dimension_name(variable, d), coordinate_of(file, variable, d));
    int* place = kind == AxisKind::time      ? &dims.time
                 : kind == AxisKind::level   ? &dims.level
                 : kind == AxisKind::rows    ? &dims.rows
                 : kind == AxisKind::columns ? &dims.columns
                                             : nullptr;
    if (place && *place < 0) {
      *place = d;
    } else {
      dims.others.push_back(d);
    }
  }
  // Of dimensions that nobody names the last ones are columns and rows.
  for (int* place : {&dims.columns, &dims.rows}) {
    if (*place >= 0 || dims.others.empty()) continue;
    *place = dims.others.back();
    dims.others.pop_back();
  }
  return dims;
}

std::vector<double> coordinate_values(const io::GridFile& file, const io::GridVariable& coordinate) {
  const io::Array stored = file.read(coordinate);
  const double scale = attribute_number(coordinate.attributes, "scale_factor", 1);
  const double offset = attribute_number(coordinate.attributes, "add_offset", 0);
  std::vector<double> values;
  with_numbers(stored, [&](auto elements) {
    for (const auto& element : elements) values.push_back(number(element) * scale + offset);
  });
  return values;
}

Axis read_axis(const io::GridFile& file, const io::GridVariable& variable, int d) {
  Axis axis{dimension_name(variable, d)};
  if (const io::GridVariable* coordinate = coordinate_of(file, variable, d)) {
    axis.units = attribute_text(coordinate->attributes, "units");
    if (is_degrees(axis.units, "north", "n") || is_angle(*coordinate, "latitude", "lat")) axis.units = "degrees_north";
    if (is_degrees(axis.units, "east", "e") || is_angle(*coordinate, "longitude", "lon")) axis.units = "degrees_east";
    axis.values = coordinate_values(file, *coordinate);
    return axis;
  }
  for (int64_t i = 0; i < variable.shape[static_cast<size_t>(d)]; ++i) axis.values.push_back(static_cast<double>(i));
  return axis;
}

bool same_axis(const Axis& a, const Axis& b) {
  const auto near = [](double x, double y) { return std::abs(x - y) <= 1e-5 * std::max(1.0, std::abs(x)); };
  return std::ranges::equal(a.values, b.values, near);
}

std::optional<FieldTimes> read_times(const io::GridFile& file, const io::GridVariable& variable,
                                     const FieldDimensions& dims) {
  const io::GridVariable* coordinate =
      dims.time >= 0 ? coordinate_of(file, variable, dims.time) : single_time(file, variable);
  const std::string units = coordinate ? attribute_text(coordinate->attributes, "units") : "";
  if (!io::CfTime::is_time(units)) return std::nullopt;
  try {
    FieldTimes times{io::CfTime(units, attribute_text(coordinate->attributes, "calendar")), {}};
    for (const double value : coordinate_values(file, *coordinate)) {
      const double seconds = std::isfinite(value) ? times.time.seconds(value) : value;
      if (!(std::abs(seconds) < kMostSeconds)) {
        fail(ErrorKind::data, "the time of frame {} is {} {}", times.seconds.size(), value, units);
      }
      times.seconds.push_back(seconds);
    }
    return times;
  } catch (const FormatError&) {
    throw;
  } catch (const Error& error) {
    fail(error.kind(), "[fields] '{}', times '{}': {}", file.path(), coordinate->name, error.what());
  }
}

}  // namespace convssm::data
