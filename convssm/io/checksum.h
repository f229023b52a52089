// Fast checksums (XXH64) that tell whether a file changed: checkpoints, datasets. Not against forgery.
#pragma once

#include <string>

namespace convssm::io {

// 16 hexadecimal digits. The file is read block by block; Error(io) if it cannot be read.
std::string file_checksum(const std::string& path);

}  // namespace convssm::io
