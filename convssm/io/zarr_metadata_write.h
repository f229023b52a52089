// The metadata files of a Zarr store that is written, by their keys.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convssm/io/grid_writer.h"

namespace convssm::io {

// Version 2: .zgroup, .zattrs, .zmetadata, and .zarray and .zattrs of each variable. Version 3: zarr.json and those of each.
std::map<std::string, std::string> zarr_metadata(const GridLayout& layout);

// The key of a chunk, "t2m/0.1.0" or "t2m/c/0/1/0".
std::string zarr_chunk_key(const GridLayout& layout, const GridVariable& variable,
                           const std::vector<int64_t>& position);

// blosc's own scale of 0 to 9.
inline constexpr int zarr_pack_level = 3;

}  // namespace convssm::io
