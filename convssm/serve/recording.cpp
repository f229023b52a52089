#include "convssm/serve/recording.h"

#include "convssm/base/error.h"
#include "convssm/data/picture.h"

namespace convssm::serve {
namespace {

constexpr int64_t shown_width = 128;  // of a frame, at least

}  // namespace

Recording::Recording(double fps) : fps_(fps) {
  if (!(fps >= 1 && fps <= 50)) fail(ErrorKind::usage, "fps must be from 1 to 50, got {}", fps);
}

void Recording::add(const io::Image& seen, const io::Image& truth) {
  if (!open_) return;
  const io::Image picture = truth.pixels.empty() ? seen : data::table_picture({{seen, truth}});
  if (!writer_) {
    writer_.emplace(gif_.get(), io::VideoFormat{.width = picture.width,
                                                .height = picture.height,
                                                .channels = picture.channels,
                                                .fps = fps_,
                                                .scale = std::max<int64_t>(1, shown_width / seen.width)});
  }
  writer_->write(picture.pixels);
  if (++frames_ == kMostRecorded) close();
}

void Recording::close() {
  if (open_ && writer_) writer_->close();
  open_ = false;
}

}  // namespace convssm::serve
