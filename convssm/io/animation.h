// Reads what people look at: animations and pictures, told by their first bytes.
#pragma once

#include <string>

#include "convssm/io/array.h"

namespace convssm::io {

// .gif u8 [T,H,W,1 or 3], .mp4 u8 [T,H,W,3], .png and .jpg u8 [1,H,W,1 or 3]. Error(usage) for others.
Array read_animation(const std::string& path);

}  // namespace convssm::io
