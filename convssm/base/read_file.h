// A whole file at once. Only regular files: a pipe would wait for its writer, a device may have no end.
#pragma once

#include <optional>
#include <string>

namespace convssm {

// Its bytes. Error(io) if they cannot be read, Error(data) if they are more than file_memory_limit().
std::string read_file(const std::string& path);

// The same; nothing where read_file() is an error.
std::optional<std::string> try_read_file(const std::string& path);

}  // namespace convssm
