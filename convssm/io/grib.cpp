// Coordinates are made when a file is opened and kept; values are unpacked when they are read, a field at a time.
#include "convssm/io/grib.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "convssm/base/error.h"
#include "convssm/io/chunk_overlap.h"
#include "convssm/io/grib_index.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

// The name of the dimension, and its coordinates.
struct AxisKind {
  const char* name;
  DType dtype;
  GridAttributes attributes;
};

const std::array<AxisKind, grib_axes>& axis_kinds() {
  static const std::array<AxisKind, grib_axes> kinds = {{
      {"time",
       DType::i64,
       {{"units", {.text = "seconds since 1970-01-01 00:00:00"}},
        {"calendar", {.text = "proleptic_gregorian"}},
        {"standard_name", {.text = "time"}}}},
      {"step", DType::i64, {{"units", {.text = "seconds"}}, {"standard_name", {.text = "forecast_period"}}}},
      {"number", DType::i64, {{"units", {.text = "1"}}, {"standard_name", {.text = "realization"}}}},
      {"level", DType::f64, {}},
  }};
  return kinds;
}

GridAttributes level_attributes(const std::string& type) {
  GridAttributes attributes = {{"long_name", {.text = type}}, {"axis", {.text = "Z"}}};
  for (const auto& [known, units, positive] : {std::tuple{"isobaricInhPa", "hPa", "down"},
                                               {"isobaricInPa", "Pa", "down"},
                                               {"heightAboveGround", "m", "up"},
                                               {"heightAboveSea", "m", "up"},
                                               {"depthBelowLand", "m", "down"},
                                               {"depthBelowSea", "m", "down"},
                                               {"theta", "K", "up"}}) {
    if (type != known) continue;
    attributes["units"].text = units;
    attributes["positive"].text = positive;
  }
  return attributes;
}

Array coordinates(DType dtype, const std::vector<int64_t>& shape, const std::vector<double>& values) {
  if (dtype == DType::f64) return make_array(shape, values);
  return make_array(shape, std::vector<int64_t>(values.begin(), values.end()));
}

class GribFile : public GridFile {
 public:
  GribFile(std::shared_ptr<const Source> source, GribIndex index)
      : GridFile(source->name(), "GRIB"), source_(std::move(source)), index_(std::move(index)) {
    std::vector<GridVariable> variables;
    for (GribVariable& variable : index_.variables) {
      if (index_.grids[variable.grid].rows == 0) {
        other_grids_.push_back(index_.grids[variable.grid].type);
        continue;
      }
      variables.push_back(describe(variable));
      numbers_.emplace(variable.name, static_cast<size_t>(&variable - index_.variables.data()));
    }
    if (variables.empty()) refuse_grids();
    for (GridVariable& variable : variables) add_single_time(index_.variables[numbers_.at(variable.name)], variable);
    for (const auto& [name, array] : coordinates_) {
      variables.push_back({.name = name,
                           .dtype = array.dtype(),
                           .dimensions = dimensions_.at(name),
                           .shape = array.shape(),
                           .chunks = array.shape(),
                           .attributes = attributes_.at(name)});
    }
    set_content(std::move(variables), {});
  }

 private:
  [[noreturn]] void refuse_grids() const {
    const std::string type = other_grids_.empty() ? "" : other_grids_[0];
    const char* operation = type.starts_with("reduced")    ? "setgridtype,regular"
                            : type.find("sh") != type.npos ? "sp2gpl"
                                                           : "remapbil,r360x180";
    fail(ErrorKind::data,
         "{}: its fields are on a grid of the kind {}, which has no rows and columns; change it: cdo {} '{}' "
         "regular.grib",
         path(), in_quotes(type), operation, path());
  }

  GridVariable describe(const GribVariable& of) {
    GridVariable variable{.name = of.name, .dtype = of.wide ? DType::f64 : DType::f32};
    GridAttributes& attributes = variable.attributes;
    const auto add_text = [&](const char* name, const std::string& text) {
      if (!text.empty()) attributes[name].text = text;
    };
    add_text("units", of.keys.units);
    add_text("long_name", of.keys.long_name);
    add_text("standard_name", of.keys.standard_name);
    add_text("GRIB_shortName", of.keys.short_name);
    add_text("GRIB_typeOfLevel", of.keys.level_type);
    add_text("GRIB_stepType", of.keys.step_type);
    add_text("GRIB_gridType", index_.grids[of.grid].type);
    for (size_t axis = 0; axis < grib_axes; ++axis) {
      const AxisKind& kind = axis_kinds()[axis];
      const std::vector<double>& values = of.values[axis];
      const auto count = static_cast<int64_t>(values.size());
      if (count > 1) {
        const bool level = kind.dtype == DType::f64;
        variable.dimensions.push_back(add_coordinates(kind.name, {}, coordinates(kind.dtype, {count}, values),
                                                      level ? level_attributes(of.keys.level_type) : kind.attributes));
        variable.shape.push_back(count);
        variable.chunks.push_back(1);
      } else if (is_known(of, static_cast<GribAxis>(axis))) {
        attributes[kind.name] = {.numbers = values, .dtype = kind.dtype};
      }
    }
    if (!is_whole(of)) attributes["missing_value"] = {.numbers = {NAN}, .dtype = variable.dtype};
    add_plane(of.grid, variable);
    return variable;
  }

  // Whether a single value of this axis says something.
  static bool is_known(const GribVariable& of, GribAxis axis) {
    if (axis == GribAxis::time) return false;  // it has a variable of its own
    if (axis == GribAxis::step) return !of.joined;
    return axis == GribAxis::level || of.keys.has_number;
  }

  // Behind the dimensions of all variables, which have the better name.
  void add_single_time(const GribVariable& of, GridVariable& variable) {
    constexpr auto time = static_cast<size_t>(GribAxis::time);
    if (of.values[time].size() > 1) return;
    const AxisKind& kind = axis_kinds()[time];
    variable.attributes["coordinates"].text =
        add_coordinates(kind.name, {}, coordinates(kind.dtype, {}, of.values[time]), kind.attributes);
  }

  void add_plane(size_t number, GridVariable& variable) {
    const GribGrid& grid = index_.grids[number];
    const auto known = planes_.find(number);
    const auto [rows, columns] =
        known != planes_.end() ? known->second : planes_.emplace(number, plane_dimensions(grid)).first->second;
    variable.dimensions.insert(variable.dimensions.end(), {rows, columns});
    variable.shape.insert(variable.shape.end(), {grid.rows, grid.columns});
    variable.chunks.insert(variable.chunks.end(), {grid.rows, grid.columns});
  }

  std::pair<std::string, std::string> plane_dimensions(const GribGrid& grid) {
    const GridAttributes north = {{"units", {.text = "degrees_north"}}, {"standard_name", {.text = "latitude"}}};
    const GridAttributes east = {{"units", {.text = "degrees_east"}}, {"standard_name", {.text = "longitude"}}};
    if (grid.along_axes && !grid.latitudes.empty()) {
      return {add_coordinates("latitude", {}, coordinates(DType::f64, {grid.rows}, grid.latitudes), north),
              add_coordinates("longitude", {}, coordinates(DType::f64, {grid.columns}, grid.longitudes), east)};
    }
    const std::string behind = others_ == 0 ? "" : fmt::format("_{}", others_ + 1);
    ++others_;
    const std::vector<std::string> plane = {"y" + behind, "x" + behind};
    if (!grid.along_axes && !grid.latitudes.empty()) {
      const std::vector<int64_t> shape = {grid.rows, grid.columns};
      add_coordinates("latitude", plane, coordinates(DType::f64, shape, grid.latitudes), north);
      add_coordinates("longitude", plane, coordinates(DType::f64, shape, grid.longitudes), east);
    }
    return {plane[0], plane[1]};
  }

  // The name under which these are known, one of them alone along a dimension of that name if `along` is empty, or a single number.
  std::string add_coordinates(const std::string& base, const std::vector<std::string>& along, const Array& array,
                              const GridAttributes& attributes) {
    for (int count = 1;; ++count) {
      const std::string name = count == 1 ? base : fmt::format("{}_{}", base, count);
      const auto at = coordinates_.find(name);
      if (std::ranges::count(index_.variables, name, &GribVariable::name) > 0) continue;
      if (at == coordinates_.end()) {
        coordinates_.emplace(name, array);
        dimensions_[name] = along.empty() && !array.shape().empty() ? std::vector{name} : along;
        attributes_[name] = attributes;
        return name;
      }
      const GridAttributes& others = attributes_[name];
      const auto equal_text = [](const auto& a, const auto& b) {
        return a.first == b.first && a.second.text == b.second.text;
      };
      if (along.empty() && at->second.shape() == array.shape() &&
          std::ranges::equal(at->second.bytes(), array.bytes()) && std::ranges::equal(others, attributes, equal_text)) {
        return name;
      }
    }
  }

  void fetch(const GridVariable& variable, std::span<const int64_t> first, Array& out) const override {
    if (const auto at = coordinates_.find(variable.name); at != coordinates_.end()) {
      copy_box(at->second, first, out.shape(), out.bytes().data());
    } else {
      fetch_fields(index_.variables[numbers_.at(variable.name)], variable, first, out);
    }
  }

  // Elements of a box of `whole`, to `to`.
  static void copy_box(const Array& whole, std::span<const int64_t> first, std::span<const int64_t> count,
                       std::byte* to) {
    const std::vector<int64_t> origin(first.size(), 0);
    const ChunkOverlap part = chunk_overlap(first, count, whole.shape(), origin);
    const auto item = static_cast<int64_t>(dtype_size(whole.dtype()));
    for_each_row(part, count, whole.shape(), [&](int64_t in_box, int64_t in_whole, int64_t length) {
      std::memcpy(to + in_box * item, whole.bytes().data() + in_whole * item, static_cast<size_t>(length * item));
    });
  }

  void fetch_fields(const GribVariable& of, const GridVariable& variable, std::span<const int64_t> first,
                    Array& out) const {
    const size_t outer = first.size() - 2;
    const std::span<const int64_t> count = out.shape();
    const GribGrid& grid = index_.grids[of.grid];
    const size_t bytes = static_cast<size_t>(count[outer] * count[outer + 1]) * dtype_size(variable.dtype);
    std::byte* to = out.bytes().data();
    for (std::vector<int64_t> at(first.begin(), first.end() - 2);;) {
      if (const std::optional<size_t> number = find_field(of, at)) {
        Array field = array_of_file(path(), variable.dtype, {grid.rows, grid.columns}, out.byte_count());
        const GribField& place = index_.fields[*number];
        grib_values(path(), place.offset, grib_message(*source_, place), grid, field);
        copy_box(field, first.subspan(outer), count.subspan(outer), to);
      } else {
        fill_with_nan(variable.dtype, {to, bytes});
      }
      to += bytes;
      size_t d = outer;
      while (d > 0 && ++at[d - 1] == first[d - 1] + count[d - 1]) {
        at[d - 1] = first[d - 1];
        --d;
      }
      if (d == 0) return;
    }
  }

  static void fill_with_nan(DType dtype, std::span<std::byte> out) {
    const float narrow = std::numeric_limits<float>::quiet_NaN();
    const double wide = std::numeric_limits<double>::quiet_NaN();
    const size_t size = dtype_size(dtype);
    const void* value = dtype == DType::f64 ? static_cast<const void*>(&wide) : &narrow;
    for (size_t i = 0; i < out.size(); i += size) std::memcpy(out.data() + i, value, size);
  }

  // Whether it has a field at each place of its dimensions.
  static bool is_whole(const GribVariable& of) {
    size_t places = 1, fields = 0;
    for (const std::vector<double>& values : of.values) places *= values.size();
    for (size_t i = 0; i < of.fields.size(); ++i) fields += i == 0 || of.fields[i].first != of.fields[i - 1].first;
    return fields == places;
  }

  // The number of the field at that place along the dimensions that it has; nothing if the file has none.
  std::optional<size_t> find_field(const GribVariable& of, const std::vector<int64_t>& at) const {
    GribPoint point{};
    size_t next = 0;
    for (size_t axis = 0; axis < grib_axes; ++axis) {
      point[axis] = of.values[axis].size() > 1 ? of.values[axis][static_cast<size_t>(at[next++])] : of.values[axis][0];
    }
    constexpr auto place_of = &std::pair<GribPoint, size_t>::first;
    const auto found = std::ranges::lower_bound(of.fields, point, {}, place_of);
    const auto count = std::ranges::upper_bound(of.fields, point, {}, place_of) - found;
    if (count == 0) return std::nullopt;
    if (count == 1) return found->second;
    const std::string text = grib_point_text(of, point), where = text.empty() ? "" : " for " + text;
    fail(ErrorKind::data, "{}: it has {} fields of '{}'{}, the first two at bytes {} and {}; keep one: grib_copy -w",
         path(), count, of.name, where, index_.fields[found->second].offset, index_.fields[found[1].second].offset);
  }

  std::shared_ptr<const Source> source_;
  GribIndex index_;
  std::map<std::string, size_t> numbers_;  // in index_.variables, by name
  std::vector<std::string> other_grids_;
  std::map<std::string, Array> coordinates_;
  std::map<std::string, std::vector<std::string>> dimensions_;  // of coordinates
  std::map<std::string, GridAttributes> attributes_;            // of coordinates
  std::map<size_t, std::pair<std::string, std::string>> planes_;
  int others_ = 0;  // grids with dimensions y and x
};

}  // namespace

bool reads_grib() { return true; }

std::unique_ptr<GridFile> open_grib(std::shared_ptr<const Source> source) {
  GribIndex index = index_grib(*source);
  return std::make_unique<GribFile>(std::move(source), std::move(index));
}

std::unique_ptr<GridFile> open_grib(const std::string& path) { return open_grib(open_source(path)); }

}  // namespace convssm::io
