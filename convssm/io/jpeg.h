// JPEG pictures, as cameras and simulators write frames. Read only.
#pragma once

#include <memory>
#include <string>

#include "convssm/io/png.h"
#include "convssm/io/source.h"

namespace convssm::io {

// Grey pictures have one channel, others three. What a camera says about turning the picture is not looked at. FormatError
// for anything that is not a complete picture.
Image read_jpeg(const std::string& path);
Image read_jpeg(std::shared_ptr<const Source> source);

}  // namespace convssm::io
