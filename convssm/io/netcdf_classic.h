// Classic NetCDF files (CDF-1, 2 and 5: with 32-bit offsets, 64-bit offsets and 64-bit data) from any source, from several threads at
// once. libnetcdf is not used for them: it reads zeros where a file was cut off, and does not survive every damaged header.
#pragma once

#include <memory>

#include "convssm/io/grid_file.h"
#include "convssm/io/source.h"

namespace convssm::io {

// Whether the first bytes are those of such a file.
bool is_classic_netcdf(const Source& source);

// FormatError for a header that is damaged, or that promises more than the file has. Variables of text are left out.
std::unique_ptr<GridFile> open_classic_netcdf(std::shared_ptr<const Source> source);

}  // namespace convssm::io
