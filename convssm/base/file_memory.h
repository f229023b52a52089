// How much memory the content of one file may take here. A small file can describe a huge array, picture or text; what it
// needs is compared with this limit before anything is allocated. One limit for every format, so that there is one number
// to know and one option that raises it (--file-memory).
#pragma once

#include <cstdint>
#include <string>

namespace convssm {

inline constexpr uint64_t default_file_memory = uint64_t{1} << 30;

uint64_t file_memory_limit();
void set_file_memory_limit(uint64_t bytes);

// Error(data) if `bytes` for `what` of the file `name` are above the limit, or above the given part of it: a value that is
// parsed from a text takes many times the memory of the text.
void require_file_memory(const std::string& name, const char* what, uint64_t bytes, uint64_t times = 1);

}  // namespace convssm
