// TIFF and BigTIFF files, as microscopes, scanners and archives of fields write them: grey or RGB, or any number of channels,
// in strips or tiles, packed by whatever libtiff unpacks. Numbers keep their type. The pages of a file are the frames of a clip; small
// copies of pages and masks are left out. Read only.
//   TiffIndex index = index_tiff(source);   Array some = read_tiff(source, index, first, count);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

struct TiffIndex {
  ArrayInfo info = {};               // [T,H,W,C] of u8, i8, u16, i16, ..., f32, f64
  std::vector<uint64_t> pages = {};  // where the directory of each frame is

  int64_t frames() const { return info.shape[0]; }
};

// What the pages are, without their pixels. FormatError for what is no TIFF file, has palettes, bits or colours that are not
// read, or pages of several sizes or types.
TiffIndex index_tiff(std::shared_ptr<const Source> source);

// Frames first .. first+count-1, [count,H,W,C]. What says how much shines through is dropped; where 0 is white it becomes black. How
// a camera was held is not looked at.
Array read_tiff(std::shared_ptr<const Source> source, const TiffIndex& index, int64_t first, int64_t count);

// All of them.
Array read_tiff(const std::string& path);
Array read_tiff(std::shared_ptr<const Source> source);

}  // namespace convssm::io
