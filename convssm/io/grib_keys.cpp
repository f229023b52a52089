// Which key says what. Steps are asked for in seconds, since eccodes refuses to give ten minutes in hours.
#include "convssm/io/grib_keys.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/grib_handle.h"
#include "convssm/io/grib_packing.h"

namespace convssm::io {
namespace {

constexpr double no_value = std::numeric_limits<double>::max();  // what eccodes gives for points without a value
constexpr int64_t most_lines = 1 << 13;                          // between a pole and the equator of a Gaussian grid
constexpr int bits_of_f32 = 24;

std::string name_of(const GribHandle& handle, const std::string& short_name) {
  if (const std::string name = handle.try_text("cfVarName"); !name.empty()) return name;
  if (!short_name.empty()) return short_name;
  const auto number = [&](const char* key) { return handle.try_integer(key).value_or(0); };
  if (const int64_t id = number("paramId"); id > 0) return fmt::format("param_{}", id);
  return fmt::format("param_{}_{}_{}", number("discipline"), number("parameterCategory"), number("parameterNumber"));
}

// `count` numbers from `first` to `last`.
std::vector<double> evenly(double first, double last, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count), first);
  for (int64_t i = 1; i < count; ++i) {
    values[static_cast<size_t>(i)] = first + (last - first) * static_cast<double>(i) / static_cast<double>(count - 1);
  }
  return values;
}

// They grow to the east, and a row that passes the border of longitudes begins below zero.
std::vector<double> longitudes_of(const GribHandle& handle, int64_t columns) {
  double first = handle.number("longitudeOfFirstGridPointInDegrees");
  double last = handle.number("longitudeOfLastGridPointInDegrees");
  const bool west = handle.try_integer("iScansNegatively").value_or(0) != 0;
  if (!west && first > last) first -= 360;
  if (west && first < last) last -= 360;
  return evenly(first, last, columns);
}

// The lines of a Gaussian grid from the first latitude on; nothing if they are others.
std::vector<double> gaussian_latitudes(const GribHandle& handle, int64_t rows) {
  const int64_t lines = handle.integer("N");
  if (lines < 1 || lines > most_lines || rows > 2 * lines) return {};
  std::vector<double> all(static_cast<size_t>(2 * lines));
  if (codes_get_gaussian_latitudes(lines, all.data()) != 0) return {};
  if (handle.try_integer("jScansPositively").value_or(0) != 0) std::ranges::reverse(all);
  const double first = handle.number("latitudeOfFirstGridPointInDegrees");
  const auto begin = std::ranges::min_element(all, {}, [&](double latitude) { return std::abs(latitude - first); });
  if (all.end() - begin < rows) return {};
  return {begin, begin + rows};
}

void set_coordinates(const GribHandle& handle, GribGrid& grid) {
  grid.along_axes = grid.type == "regular_ll" || grid.type == "regular_gg";
  if (grid.type == "regular_ll") {
    grid.latitudes = evenly(handle.number("latitudeOfFirstGridPointInDegrees"),
                            handle.number("latitudeOfLastGridPointInDegrees"), grid.rows);
  } else if (grid.type == "regular_gg") {
    grid.latitudes = gaussian_latitudes(handle, grid.rows);
  }
  if (grid.along_axes) {
    grid.longitudes = longitudes_of(handle, grid.columns);
    return;
  }
  const auto points = static_cast<size_t>(grid.points);
  auto latitudes = handle.numbers("latitudes", points), longitudes = handle.numbers("longitudes", points);
  if (!latitudes || !longitudes) return;
  grid.latitudes = std::move(*latitudes), grid.longitudes = std::move(*longitudes);
}

// The place in [rows, columns] of the value of that number in the file.
int64_t place_of(const GribGrid& grid, int64_t number) {
  const int64_t length = grid.columns_first ? grid.rows : grid.columns;
  const int64_t line = number / length, along = number % length;
  const int64_t turned = grid.turns && line % 2 == 1 ? length - 1 - along : along;
  return grid.columns_first ? turned * grid.columns + line : line * grid.columns + turned;
}

template <typename T>
void put_values(const std::vector<double>& values, const GribGrid& grid, std::span<T> out) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = values[i] == no_value ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(values[i]);
    out[static_cast<size_t>(place_of(grid, static_cast<int64_t>(i)))] = value;
  }
}

void require_points(const std::string& file, int64_t points) {
  const auto bytes = checked_byte_count(std::vector{points}, 4 * sizeof(double));
  require_file_memory(file, "a field", bytes.value_or(UINT64_MAX));
}

}  // namespace

GribKeys grib_keys(const std::string& file, uint64_t offset, std::string message) {
  GribHandle handle(file, offset, std::move(message));
  GribKeys keys;
  keys.short_name = handle.try_text("shortName");
  keys.name = name_of(handle, keys.short_name);
  keys.long_name = handle.try_text("name");
  keys.units = handle.try_text("units");
  keys.standard_name = handle.try_text("cfName");
  keys.level_type = handle.try_text("typeOfLevel");
  keys.level = handle.try_number("level").value_or(0);
  if (!std::isfinite(keys.level)) handle.refuse("its level is no number");
  keys.step_type = handle.try_text("stepType");
  handle.set("stepUnits", "s");
  keys.step = handle.integer("endStep");
  const auto number = handle.try_integer("perturbationNumber");
  keys.number = number.value_or(0), keys.has_number = number.has_value();
  const bool doubles = handle.try_text("packingType") == "grid_ieee" && handle.try_integer("precision") != 1;
  keys.wide = doubles || handle.try_integer("bitsPerValue").value_or(0) > bits_of_f32;
  return keys;
}

GribGrid grib_grid(const std::string& file, uint64_t offset, std::string message) {
  GribHandle handle(file, offset, std::move(message));
  GribGrid grid;
  grid.type = handle.try_text("gridType");
  grid.points = handle.try_integer("numberOfDataPoints").value_or(0);
  const int64_t columns = handle.try_integer("Nx").value_or(0), rows = handle.try_integer("Ny").value_or(0);
  const auto product = rows > 0 && columns > 0 ? checked_byte_count(std::vector{rows, columns}, 1) : std::nullopt;
  if (grid.type.starts_with("reduced") || product != static_cast<uint64_t>(grid.points)) return grid;
  require_points(file, grid.points);
  grid.rows = rows, grid.columns = columns;
  grid.columns_first = handle.try_integer("jPointsAreConsecutive").value_or(0) != 0;
  grid.turns = handle.try_integer("alternativeRowScanning").value_or(0) != 0;
  set_coordinates(handle, grid);
  if (!grid.along_axes && !grid.latitudes.empty()) {
    for (std::vector<double>* values : {&grid.latitudes, &grid.longitudes}) {
      std::vector<double> in_order(values->size());
      put_values(*values, grid, std::span(in_order));
      *values = std::move(in_order);
    }
  }
  return grid;
}

void grib_values(const std::string& file, uint64_t offset, std::string message, const GribGrid& grid, Array& out) {
  require_points(file, grid.points);
  check_grib_packing(file, offset, message);
  GribHandle handle(file, offset, std::move(message));
  handle.set("missingValue", no_value);
  const auto values = handle.numbers("values", static_cast<size_t>(grid.points));
  if (!values) handle.refuse(fmt::format("its {} values cannot be unpacked", grid.points));
  if (out.dtype() == DType::f32)
    put_values(*values, grid, out.values<float>());
  else
    put_values(*values, grid, out.values<double>());
}

}  // namespace convssm::io
