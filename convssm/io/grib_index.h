// The fields of a GRIB file as arrays: which belong together, what their dimensions are called, and which field is where in them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convssm/io/grib_keys.h"
#include "convssm/io/grib_messages.h"
#include "convssm/io/grid_file.h"

namespace convssm::io {

// Of a field, in the order of the dimensions.
enum class GribAxis { time, step, number, level };
inline constexpr size_t grib_axes = 4;
using GribPoint = std::array<double, grib_axes>;

struct GribVariable {
  std::string name = {};
  GribKeys keys = {};  // of its first field
  size_t grid = 0;
  bool wide = false;
  bool joined = false;  // steps are 0: `time` is when the fields are of, not when their forecast starts
  std::array<std::vector<double>, grib_axes> values = {};  // sorted
  std::vector<std::pair<GribPoint, size_t>> fields = {};   // sorted; numbers of GribIndex::fields
};

struct GribIndex {
  std::vector<GribField> fields = {};
  std::vector<GribGrid> grids = {};
  std::vector<GribVariable> variables = {};  // by name
};

// Reads all headers of the file.
GribIndex index_grib(const Source& source);

// "time 2019-03-01 05:00:00, level 500", of the dimensions that have several values.
std::string grib_point_text(const GribVariable& variable, const GribPoint& point);

}  // namespace convssm::io
