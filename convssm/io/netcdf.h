// NetCDF files: classic ones by io/netcdf_classic, NetCDF-4 by libnetcdf. It is not made for threads, and neither is libhdf5 below it:
// reads wait for each other. What a file refers to outside of itself is not followed; of damaged NetCDF-4 files those libraries promise
// little.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "convssm/io/grid_file.h"

namespace convssm::io {

// Error(io) or FormatError that names the file if it cannot be opened. Variables of text and of types of the file's own are left out.
std::unique_ptr<GridFile> open_netcdf(const std::string& path);

// Bytes of unpacked chunks that open files may keep: those of a frame of each variable that was read, of all files together at most
// 256 MiB; where that is spent, 1 MiB for a variable.
uint64_t kept_netcdf_chunks();

}  // namespace convssm::io
