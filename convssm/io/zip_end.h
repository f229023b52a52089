// The records at the end of a ZIP file, which say where its directory is. Inside io/ only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "convssm/io/source.h"

namespace convssm::io::zip {

struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t count = 0;  // of members
  uint64_t end = 0;    // where the record after it begins
};

// The directory, inside the file and large enough for its members. FormatError if there is none.
Directory find_directory(const Source& source);

// For small records: the caller has checked the size against the file.
std::vector<std::byte> read_bytes(const Source& source, uint64_t offset, uint64_t size);

}  // namespace convssm::io::zip
