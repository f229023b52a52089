// NetCDF files: classic ones by io/netcdf_classic, NetCDF-4 by libnetcdf. It is not made for threads, and neither is libhdf5 below it:
// reads wait for each other. What a file refers to outside of itself is not followed; of damaged NetCDF-4 files those libraries promise
// little.
#pragma once

#include <memory>
#include <string>

#include "convssm/io/grid_file.h"

namespace convssm::io {

// Error(io) or FormatError that names the file if it cannot be opened. Variables of text and of types of the file's own are left out.
std::unique_ptr<GridFile> open_netcdf(const std::string& path);

}  // namespace convssm::io
