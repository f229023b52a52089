// Numbers of the ZIP format that both its reader and its writer need. Inside io/ only.
#pragma once

#include <cstdint>

namespace convssm::io::zip {

inline constexpr uint32_t local_signature = 0x04034b50;
inline constexpr uint32_t descriptor_signature = 0x08074b50;
inline constexpr uint32_t central_signature = 0x02014b50;
inline constexpr uint32_t end_signature = 0x06054b50;
inline constexpr uint32_t end64_signature = 0x06064b50;
inline constexpr uint32_t locator64_signature = 0x07064b50;

inline constexpr uint64_t local_size = 30;
inline constexpr uint64_t central_size = 46;
inline constexpr uint64_t end_size = 22;
inline constexpr uint64_t end64_size = 56;
inline constexpr uint64_t locator64_size = 20;

inline constexpr uint32_t in_zip64 = 0xffffffff;  // the value is in the ZIP64 record
inline constexpr uint16_t in_zip64_short = 0xffff;
inline constexpr uint16_t zip64_extra = 1;

inline constexpr uint16_t flag_encrypted = 0x2041;  // plain, strong, and masked headers
inline constexpr uint16_t flag_descriptor = 0x0008;
inline constexpr uint16_t flag_patch = 0x0020;
inline constexpr uint16_t flag_utf8 = 0x0800;

}  // namespace convssm::io::zip
