// The kind of the file chooses the reader; each format checks its files itself.
#include "convssm/io/animation.h"

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/io/file_kind.h"
#include "convssm/io/gif.h"
#include "convssm/io/jpeg.h"
#include "convssm/io/png.h"
#include "convssm/io/pnm.h"
#include "convssm/io/tiff.h"
#include "convssm/io/video_read.h"

namespace convssm::io {
namespace {

bool is_pnm(const std::string& ending) { return ending == ".pnm" || ending == ".pgm" || ending == ".ppm"; }
bool is_tiff(const std::string& ending) { return ending == ".tif" || ending == ".tiff"; }

// [H,W,C] as [1,H,W,C].
Array one_frame(const Array& image) {
  Array frame(image.dtype(), {1, image.shape()[0], image.shape()[1], image.shape()[2]});
  std::ranges::copy(image.bytes(), frame.bytes().begin());
  return frame;
}

}  // namespace

Array read_animation(const std::string& path) {
  const std::string ending = reading_ending(path);
  if (ending == ".gif") return read_gif(path);
  if (is_video_ending(ending)) return read_video(path);
  if (is_tiff(ending)) return read_tiff(path);
  if (is_pnm(ending)) return read_pnm(path);
  if (ending == ".png") return one_frame(read_png_samples(open_source(path)));
  if (ending == ".jpg" || ending == ".jpeg") {
    const Image image = read_jpeg(path);
    return make_array({1, image.height, image.width, image.channels}, image.pixels);
  }
  fail(ErrorKind::usage,
       "[read_animation] the name of an animation ends with .gif, .mp4, .mov, .avi, .mkv or .webm, that of a picture "
       "with "
       ".png, .jpg, .tif, .pgm or .ppm; got '{}'",
       path);
}

bool may_hold_pictures(const std::string& path) {
  const std::string ending = file_ending(path);
  return is_tiff(ending) || is_pnm(ending);
}

int64_t count_pictures(const std::string& path) {
  const std::string ending = reading_ending(path);
  if (is_tiff(ending)) return index_tiff(open_source(path)).frames();
  return is_pnm(ending) ? read_pnm_info(open_source(path)).shape[0] : 1;
}

}  // namespace convssm::io
