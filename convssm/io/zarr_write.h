// Zarr stores, written as xarray writes them: metadata in one place beside that of each array (consolidated), names of dimensions, the
// missing value as the one of chunks that are not there, chunks packed by blosc with zstd. Version 2, or 3 without shards. There is no
// bf16.
#pragma once

#include <memory>
#include <string>

#include "convssm/io/grid_writer.h"

namespace convssm::io {

// The layout is complete (io/grid_layout.h). From any thread, each writer from one at a time.
std::unique_ptr<GridWriter> open_zarr_writer(const std::string& path, const GridLayout& layout);

}  // namespace convssm::io
