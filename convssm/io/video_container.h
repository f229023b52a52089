// What the first bytes of a video say: which of libav's demuxers reads it. Inside io/ only.
#pragma once

#include "convssm/io/source.h"

namespace convssm::io {

struct VideoContainer {
  const char* ending;   // as of io/file_kind.h
  const char* name;     // "MP4", for people
  const char* demuxer;  // of libav
  bool seeks_by_shown;  // by the times at which frames are shown, otherwise by those at which they are decoded
};

// FormatError if it is none of those that are read, or says that it is longer than it is. libav would take a file that was cut
// for a shorter video.
const VideoContainer& container_of(const Source& source);

}  // namespace convssm::io
