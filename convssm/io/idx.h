// IDX files, the format of MNIST and its relatives: one array, big-endian, as it is or compressed by gzip (told by its
// first bytes, not by its name). Format: 0 0 type dimensions, the sizes as 32 bits each, the elements.
//   Array images = read_idx("train-images-idx3-ubyte.gz");   u8 [60000, 28, 28]
#pragma once

#include <memory>
#include <string>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

// Error(io) if the file cannot be read, FormatError if it is not an IDX file.
Array read_idx(const std::string& path);
Array read_idx(std::shared_ptr<const Source> source);

}  // namespace convssm::io
