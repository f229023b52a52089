// A gzip file as a stream of what is compressed in it. One member only, as gzip(1) writes it.
#pragma once

#include <memory>

#include "convssm/io/source.h"

namespace convssm::io {

// Whether the first bytes are those of a gzip file.
bool is_gzip(const Source& source);

// What the file holds, less than 4 GiB; offsets in errors count decompressed bytes. The size that the file declares is
// compared with what its compressed bytes can hold at all, so that nothing large is allocated for a false one.
std::unique_ptr<Reader> make_gzip_reader(std::shared_ptr<const Source> source);

}  // namespace convssm::io
