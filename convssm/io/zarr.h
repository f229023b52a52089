// Zarr stores, which are folders with a file for each chunk or shard: versions 2 and 3, with xarray's conventions for the names of
// dimensions and for missing values. Chunks are stored plain or packed with blosc, zstd, gzip, zlib or lz4.
//   auto file = open_zarr("era5.zarr");   Array day = file->read(file->variable("t2m"), {24, 0, 0}, {24, 33, 49});
// Dimensions without a name are called NAME_dim_0, ...; the array of a store that is one array is called "data".
#pragma once

#include <memory>
#include <string>

#include "convssm/io/grid_file.h"

namespace convssm::io {

// `path` is a store, or a group in it. Error(io) if there is no such folder, Error(data) if it is none of a store. An array that is
// packed in a way that is not known here is listed, and an Error(data) when it is read.
std::unique_ptr<GridFile> open_zarr(const std::string& path);

}  // namespace convssm::io
