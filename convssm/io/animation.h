// Reads what people look at: animations and pictures, told by their first bytes.
#pragma once

#include <string>

#include "convssm/io/array.h"

namespace convssm::io {

// [T,H,W,C]: u8 of .gif, videos (video_read.h) and .jpg; of .png u8 or u16, T is 1; of .pgm, .ppm and .pnm as pnm.h says, of .tif as
// tiff.h says. Error(usage) for others.
Array read_animation(const std::string& path);

// Whether a picture of this name may be several: .tif, .tiff, .pgm, .ppm, .pnm.
bool may_hold_pictures(const std::string& path);

// Frames of a picture, which are several in some .tif and .pnm files. Found without their pixels.
int64_t count_pictures(const std::string& path);

}  // namespace convssm::io
