// The directory of a ZIP file: found at its end, checked against the headers of the members. Inside io/ only.
#pragma once

#include <vector>

#include "convssm/io/source.h"
#include "convssm/io/zip.h"

namespace convssm::io::zip {

// All members. FormatError unless names are unique, members lie apart from each other inside the file, and sizes are
// possible for their method.
std::vector<ZipMember> read_directory(const Source& source);

}  // namespace convssm::io::zip
