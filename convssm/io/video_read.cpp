// Whole videos. Frames are collected one by one; the number that the container declares is not trusted.
#include "convssm/io/video_read.h"

#include <algorithm>
#include <array>
#include <vector>

#include "convssm/base/file_memory.h"
#include "convssm/io/video_decode.h"

namespace convssm::io {

bool is_video_ending(std::string_view ending) {
  constexpr std::array<std::string_view, 6> endings{".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm"};
  return std::ranges::find(endings, ending) != endings.end();
}

Array read_video(const std::string& path) { return read_video(open_source(path)); }

Array read_video(std::shared_ptr<const Source> source) {
  libav::VideoDecoder video(std::move(source));
  std::vector<std::unique_ptr<uint8_t[]>> frames;
  libav::FrameSize size{};
  while (const AVFrame* frame = video.next()) {
    size = video.size(*frame);
    require_file_memory(video.file().name(), "its frames", (frames.size() + 1) * size.bytes());
    frames.push_back(std::make_unique_for_overwrite<uint8_t[]>(size.bytes()));
    video.convert(*frame, frames.back().get());
  }
  if (frames.empty()) video.file().fail("a video without any frame");
  Array array(DType::u8, {std::ssize(frames), size.height, size.width, size.channels});
  auto out = array.values<uint8_t>().begin();
  for (auto& frame :
       frames) {  // each is given back as it is copied, so that there are never two copies of the whole video
    out = std::copy_n(frame.get(), size.bytes(), out);
    frame.reset();
  }
  return array;
}

}  // namespace convssm::io
