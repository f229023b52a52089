// What eccodes knows of a GRIB message: what its field is of, where and on which grid, and its values. One call at a time: the
// eccodes of Debian is not made for threads. What eccodes would print is not printed, where it would end the program is an Error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/grib_messages.h"

namespace convssm::io {

struct GribKeys {
  std::string name = {};  // that of CF, which cfgrib and the NetCDF files of ECMWF use, "t2m", else that of GRIB, "2t"
  std::string short_name = {};                                 // that of GRIB
  std::string long_name = {}, units = {}, standard_name = {};  // "" if not known
  std::string level_type = {}, step_type = {};                 // "isobaricInhPa", "accum"
  int64_t step = 0;                                            // seconds behind the time of its header
  int64_t number = 0;                                          // of the member, 0 if there is none
  bool has_number = false;
  double level = 0;
  bool wide = false;  // more bits than f32 has
};

// A rectangle of points. Rows and columns are as a file scans them: the first row is that of its first points, the first column too.
struct GribGrid {
  std::string type = {};  // "regular_ll"
  int64_t points = 0;
  int64_t rows = 0, columns = 0;  // 0 if it is no rectangle, as reduced and spectral ones
  bool columns_first = false;     // the file goes along columns
  bool turns = false;             // every second line of the file goes the other way
  bool along_axes = false;        // latitudes are of rows and longitudes of columns; else of all points, or not known
  std::vector<double> latitudes = {}, longitudes = {};
};

// FormatError with `file` and the offset if a message without values does not make sense.
GribKeys grib_keys(const std::string& file, uint64_t offset, std::string message);

// Of a message with values. Error(data) if it is above the limit of base/file_memory.h.
GribGrid grib_grid(const std::string& file, uint64_t offset, std::string message);

// The values as [rows, columns], f32 or f64 as `out` is; NaN where there are none.
void grib_values(const std::string& file, uint64_t offset, std::string message, const GribGrid& grid, Array& out);

}  // namespace convssm::io
