// What is announced to a writer of io/grid_writer.h, checked by the rules that NetCDF and Zarr have in common, and completed.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "convssm/io/grid_writer.h"

namespace convssm::io {

// With the shape and the chunks of every variable. Error(usage) that names what is wrong.
GridLayout complete_layout(GridLayout layout);

// The dimension of a variable along which its rows come.
size_t row_axis(const GridLayout& layout, const GridVariable& variable);

// An element that stands for missing ones, of the variable's type; nothing if the variable has none.
std::optional<std::vector<std::byte>> fill_element(const GridVariable& variable);

}  // namespace convssm::io
