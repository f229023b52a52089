// GRIB files, editions 1 and 2, by eccodes: the messages of a file, put together to arrays.
//   auto file = open_grib("era5.grib");   Array day = file->read(file->variable("t2m"), {24, 0, 0}, {24, 33, 49});
// A variable is what has the same name, kind of level, kind of step (accumulated, ...) and grid; where a name has several of one kind,
// it follows the name: "t_isobaricInhPa". Names are those of cfgrib. The dimensions are, in this order,
//   time       int64 seconds since 1970-01-01
//   step       int64 seconds
//   number     of the member
//   level      in the units of its kind, as double
//   latitude, longitude    of regular grids in degrees; y, x of others, with latitude and longitude [y, x] where eccodes knows them
// all but the last two sorted. `time` is when a field is of, the end of the interval of an accumulated one. Only where forecasts that
// start at different times overlap, `time` is when they start, and `step` counts from there. A dimension that has a single value is left
// out, and the value is an attribute of that name; a single time is a number beside the variable, named by its `coordinates`. Where two
// variables have different ones, the second is called "level_2". Rows and columns are in the order of the file: the first row is mostly the
// northernmost. Values are float32, or float64 if the file has more than 24 bits for them; NaN where it has none.
// Opening reads the headers of all messages and no values. A field is read without the rest of the file, from any thread.
#pragma once

#include <memory>
#include <string>

#include "convssm/io/grid_file.h"
#include "convssm/io/source.h"

namespace convssm::io {

// Whether convssm was built with eccodes.
bool reads_grib();

// Error(io) or FormatError that names the file if it cannot be opened; Error(data) if it has only reduced or spectral grids, which are no
// arrays, or if convssm was built without eccodes. A field
// that the file does not have is NaN, and its variable has an attribute missing_value then; to read one that it has twice is an
// Error(data) that says which. Damaged headers are refused here; of damaged values that are packed with JPEG 2000, PNG, CCSDS or in groups eccodes
// promises little.
std::unique_ptr<GridFile> open_grib(const std::string& path);
std::unique_ptr<GridFile> open_grib(std::shared_ptr<const Source> source);

}  // namespace convssm::io
