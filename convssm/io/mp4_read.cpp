// Whole videos. Frames are collected one by one; the number that the container declares is not trusted.
#include <algorithm>
#include <vector>

#include "convssm/base/file_memory.h"
#include "convssm/io/mp4.h"
#include "convssm/io/mp4_decode.h"

namespace convssm::io {

Array read_mp4(const std::string& path) { return read_mp4(open_source(path)); }

Array read_mp4(std::shared_ptr<const Source> source) {
  libav::Mp4Decoder video(std::move(source));
  std::vector<std::unique_ptr<uint8_t[]>> frames;
  int64_t height = 0, width = 0;
  size_t bytes = 0;
  while (const AVFrame* frame = video.next()) {
    height = frame->height, width = frame->width;
    bytes = static_cast<size_t>(height * width * 3);
    require_file_memory(video.file().name(), "its frames", (frames.size() + 1) * bytes);
    frames.push_back(std::make_unique_for_overwrite<uint8_t[]>(bytes));
    video.convert(*frame, frames.back().get());
  }
  if (frames.empty()) video.file().fail("an MP4 file without any frame");
  Array array(DType::u8, {std::ssize(frames), height, width, 3});
  auto out = array.values<uint8_t>().begin();
  for (auto& frame :
       frames) {  // each is given back as it is copied, so that there are never two copies of the whole video
    out = std::copy_n(frame.get(), bytes, out);
    frame.reset();
  }
  return array;
}

}  // namespace convssm::io
