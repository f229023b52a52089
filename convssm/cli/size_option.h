// What --size says of frames, in the commands that have it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace convssm::cli {

// Height and width of "64" or "64x48", height first. Error(usage) for anything else.
std::pair<int64_t, int64_t> parse_size(const std::string& text);

}  // namespace convssm::cli
