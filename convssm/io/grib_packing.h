// Looks at how the values of a GRIB message of edition 2 are packed before eccodes unpacks them: it takes some numbers there on trust.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace convssm::io {

// FormatError if the values say something about their size that is not so: simple packing with fewer bits than there are values, JPEG 2000
// pictures of another size, complex packing of more groups than values, blocks that CCSDS has not.
void check_grib_packing(const std::string& file, uint64_t offset, std::string_view message);

}  // namespace convssm::io
