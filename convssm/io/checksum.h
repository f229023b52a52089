// Fast checksums (XXH64) that tell whether a file changed: checkpoints, datasets. Not against forgery.
#pragma once

#include <string>
#include <string_view>

namespace convssm::io {

// 16 hexadecimal digits. The file is read block by block; Error(io) if it cannot be read.
std::string file_checksum(const std::string& path);
std::string text_checksum(std::string_view text);

}  // namespace convssm::io
