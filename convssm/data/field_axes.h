// Which dimension of a grid file's variable is what, by the CF conventions: time, level, rows and columns. Told by the attributes of
// the coordinate (axis, standard_name, units) before its name; of what nothing is said, the last two are rows and columns.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convssm/data/axes.h"
#include "convssm/io/cf_time.h"
#include "convssm/io/grid_file.h"

namespace convssm::data {

enum class AxisKind { none, time, level, rows, columns };

// What a coordinate variable (or its name alone) is the axis of.
AxisKind kind_of_axis(const std::string& name, const io::GridVariable* coordinate);

// Places of the dimensions of a variable; -1: there is none.
struct FieldDimensions {
  int time = -1, level = -1, rows = -1, columns = -1;
  std::vector<int> others = {};  // ensemble members and the like

  bool are_field() const { return rows >= 0 && columns >= 0; }
};
FieldDimensions find_dimensions(const io::GridFile& file, const io::GridVariable& variable);

// The coordinate of dimension number `d`; null if it has none.
const io::GridVariable* coordinate_of(const io::GridFile& file, const io::GridVariable& variable, int d);

// Numbers of a one-dimensional variable, with its scale_factor and add_offset.
std::vector<double> coordinate_values(const io::GridFile& file, const io::GridVariable& coordinate);

// Rows or columns with their coordinate, or numbered from 0 without one. "degrees_north" for all spellings of it.
Axis read_axis(const io::GridFile& file, const io::GridVariable& variable, int d);

// Whether coordinates are the same, but for rounding.
bool same_axis(const Axis& a, const Axis& b);

// When the frames of a variable are, in seconds, and of which calendar; of a variable without a dimension of time by a single number
// beside it. Nothing if nobody says. Error(data) that names the file for times that are no numbers or cannot be read.
struct FieldTimes {
  io::CfTime time;
  std::vector<double> seconds;
};
std::optional<FieldTimes> read_times(const io::GridFile& file, const io::GridVariable& variable,
                                     const FieldDimensions& dims);

// Of an attribute: its text, or ""; its first number, or `otherwise`.
std::string attribute_text(const io::GridAttributes& attributes, const char* name);
double attribute_number(const io::GridAttributes& attributes, const char* name, double otherwise);

}  // namespace convssm::data
