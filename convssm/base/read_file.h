// A whole file at once.
#pragma once

#include <optional>
#include <string>

namespace convssm {

// Its bytes; nothing if it cannot be read to its end.
std::optional<std::string> read_file(const std::string& path);

}  // namespace convssm
