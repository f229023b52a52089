// NetCDF-4 files, written by libnetcdf: chunks packed with zlib, bytes of equal weight together. Elements of bool are bytes with the
// attribute dtype = "bool", as xarray writes and reads them; f16 and bf16 there are none.
#pragma once

#include <memory>
#include <string>

#include "convssm/io/grid_writer.h"

namespace convssm::io {

// The layout is complete (io/grid_layout.h). From any thread; several writers wait for each other.
std::unique_ptr<GridWriter> open_netcdf_writer(const std::string& path, const GridLayout& layout);

}  // namespace convssm::io
