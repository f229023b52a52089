// The kind of the file chooses the reader; each format checks its files itself.
#include "convssm/io/animation.h"

#include "convssm/base/error.h"
#include "convssm/io/file_kind.h"
#include "convssm/io/gif.h"
#include "convssm/io/jpeg.h"
#include "convssm/io/png.h"
#include "convssm/io/video_read.h"

namespace convssm::io {

Array read_animation(const std::string& path) {
  const std::string ending = reading_ending(path);
  if (ending == ".gif") return read_gif(path);
  if (is_video_ending(ending)) return read_video(path);
  if (ending == ".png" || ending == ".jpg" || ending == ".jpeg") {
    const Image image = ending == ".png" ? read_png(path) : read_jpeg(path);
    return make_array({1, image.height, image.width, image.channels}, image.pixels);
  }
  fail(ErrorKind::usage,
       "[read_animation] the name of an animation ends with .gif, .mp4, .mov, .avi, .mkv or .webm, that of a picture "
       "with "
       ".png or .jpg; got '{}'",
       path);
}

}  // namespace convssm::io
