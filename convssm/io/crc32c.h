// CRC-32C (Castagnoli), the checksum of TensorFlow's files: crc32c("123456789") == 0xe3069283.
#pragma once

#include <cstdint>
#include <string_view>

namespace convssm::io {

uint32_t crc32c(std::string_view bytes);

// As TensorFlow stores it: masked, because the bytes may hold checksums themselves.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace convssm::io
