// PGM and PPM pictures (PNM), grey and RGB, as bytes (P5, P6) or as text (P2, P3). A file of bytes may hold several, one after the
// other: the frames of a clip. Read only.
#pragma once

#include <memory>
#include <string>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

// [T,H,W,1 or 3]: u8, scaled to 0 to 255, where the largest value of the header is at most 255; otherwise u16, the numbers as they
// are. FormatError for anything that is not complete, has a number above the largest, or pictures of several sizes or types.
Array read_pnm(const std::string& path);
Array read_pnm(std::shared_ptr<const Source> source);

// Type and shape of the same.
ArrayInfo read_pnm_info(std::shared_ptr<const Source> source);

}  // namespace convssm::io
