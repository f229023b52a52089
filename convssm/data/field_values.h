// What the attributes of a grid file's variable say of its stored numbers: what they stand for, and which are no measurements.
#pragma once

#include <limits>
#include <vector>

#include "convssm/io/grid_file.h"

namespace convssm::data {

struct FieldValues {
  double scale = 1, offset = 0;  // value = stored * scale + offset
  // Of stored numbers, unsigned where they are meant so:
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  std::vector<double> missing = {};                             // by attributes
  double unwritten = std::numeric_limits<double>::quiet_NaN();  // by the rule of NetCDF for what was never written
  bool wraps = false;                                           // negative numbers are large ones

  bool declare_missing() const;  // whether some attribute does
};
FieldValues values_of(const io::GridFile& file, const io::GridVariable& variable);

}  // namespace convssm::data
