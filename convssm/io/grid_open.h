// Whatever describes itself, by its first bytes: NetCDF (io/netcdf.h), HDF5, GRIB (io/grib.h), and folders that are Zarr stores
// (io/zarr.h).
//   auto file = open_grid(path);   for (const GridVariable& variable : file->variables()) ...
// An HDF5 file that is no NetCDF-4 file is read by the same library: its groups, arrays of numbers and attributes, with dimensions called
// NAME_dim_0, ... where it has no scales for them. Left out are bools (enumerations), text and compounds; io/hdf5.h reads the first of
// them.
#pragma once

#include <memory>
#include <string>

#include "convssm/io/grid_file.h"

namespace convssm::io {

// Whether open_grid() is for it; false too if it cannot be looked at.
bool is_grid(const std::string& path);

// Error(data) that says what it is if it is something else; errors of the readers.
std::unique_ptr<GridFile> open_grid(const std::string& path);

}  // namespace convssm::io
