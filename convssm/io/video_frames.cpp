// A frame is told by the time at which it is shown, which packets and decoded frames both carry. To get a frame, decoding
// starts at the last key frame that is shown before it or is it; what else comes out on the way is dropped by its time. If
// that fails (some encoders mark frames as key that need earlier ones), the video is decoded from its first frame.
#include <algorithm>
#include <limits>

#include "convssm/base/error.h"
#include "convssm/io/video_decode.h"
#include "convssm/io/video_read.h"

namespace convssm::io {
namespace {

using namespace libav;

constexpr int64_t max_frames = int64_t{1} << 32;

struct Listed {
  int64_t shown, sought;
  bool key;
};

// VP8 has frames that only others refer to, in packets of their own; a bit of the first byte tells.
bool is_hidden(const Demuxer& file, const AVPacket& packet) {
  return file.parameters().codec_id == AV_CODEC_ID_VP8 && (packet.data[0] & 0x10) == 0;
}

// The packets whose frames are shown; nothing if they do not say when, or two say the same.
std::optional<std::vector<Listed>> list_packets(Demuxer& file) {
  std::vector<Listed> all;
  const Packet packet(av_packet_alloc());
  require_memory(packet.get());
  while (file.next(packet.get())) {
    if ((packet->flags & AV_PKT_FLAG_DISCARD) != 0 || is_hidden(file, *packet)) continue;
    const int64_t sought = file.seek_time(*packet);
    if (packet->pts == AV_NOPTS_VALUE || sought == AV_NOPTS_VALUE) return std::nullopt;
    all.push_back({packet->pts, sought, (packet->flags & AV_PKT_FLAG_KEY) != 0});
    if (std::ssize(all) > max_frames) file.fail("a video of more than {} frames", max_frames);
  }
  std::ranges::sort(all, {}, &Listed::shown);
  const bool twice = std::ranges::adjacent_find(all, {}, &Listed::shown) != all.end();
  if (all.empty() || twice || !all[0].key) return std::nullopt;
  return all;
}

[[noreturn]] void fail_times(const Source& source) {
  source.fail(0, "its frames are not shown when its packets say; write it anew: ffmpeg -i in.mkv out.mp4");
}

int64_t time_of(const AVFrame& frame) { return frame.pts != AV_NOPTS_VALUE ? frame.pts : frame.best_effort_timestamp; }

}  // namespace

std::optional<VideoIndex> index_video(std::shared_ptr<const Source> source) {
  VideoIndex index;
  VideoDecoder video(source);
  const AVFrame* first = video.next();
  if (first == nullptr) video.file().fail("a video without any frame");
  const FrameSize size = video.size(*first);
  index.height = size.height, index.width = size.width, index.channels = size.channels;
  const int64_t begins = time_of(*first);
  Demuxer file(source);
  const auto packets = list_packets(file);
  if (!packets || (*packets)[0].shown != begins) return std::nullopt;
  for (const Listed& packet : *packets) {
    if (packet.key) index.keys.emplace_back(index.frames(), packet.sought);
    index.shown.push_back(packet.shown);
  }
  return index;
}

struct VideoFrames::Decoding {
  explicit Decoding(std::shared_ptr<const Source> source) : video(std::move(source)) {}
  VideoDecoder video;
  int64_t next = 0;        // the frame that comes after those that were read
  bool from_start = true;  // no frame was passed over
};

VideoFrames::VideoFrames(std::shared_ptr<const Source> source, VideoIndex index)
    : source_(std::move(source)), index_(std::move(index)) {}
VideoFrames::~VideoFrames() = default;

// Ready to decode frame `first`, by going on if no key frame lies between.
void VideoFrames::restart(int64_t first) {
  const auto after = std::ranges::upper_bound(index_.keys, first, {}, [](const auto& key) { return key.first; });
  const auto key = std::prev(after);  // the first frame is one
  if (decoding_ && decoding_->next <= first && key->first <= decoding_->next) return;
  decoding_ = std::make_unique<Decoding>(source_);
  if (key->first == 0) return;
  decoding_->video.seek(key->second);
  decoding_->from_start = false;
}

// False if the frames that come out are not those that follow each other.
bool VideoFrames::fill(int64_t first, Array& out) {
  const int64_t count = out.shape()[0];
  const FrameSize size{index_.height, index_.width, index_.channels};
  decoding_->next = std::numeric_limits<int64_t>::max();  // until all of them are there
  for (int64_t k = 0; k < count;) {
    const AVFrame* frame = decoding_->video.next();
    if (frame == nullptr || decoding_->video.size(*frame) != size) return false;
    const int64_t shown = time_of(*frame), wanted = index_.shown[static_cast<size_t>(first + k)];
    if (shown > wanted) return false;
    if (shown < wanted) continue;
    decoding_->video.convert(*frame, out.values<uint8_t>().data() + static_cast<size_t>(k++) * size.bytes());
  }
  decoding_->next = first + count;
  return true;
}

Array VideoFrames::read(int64_t first, int64_t count) {
  if (first < 0 || count < 1 || count > index_.frames() - first) {
    fail(ErrorKind::usage, "[VideoFrames] '{}' has {} frames, asked for {} from {} on", source_->name(),
         index_.frames(), count, first);
  }
  Array out = array_of_file(source_->name(), DType::u8, {count, index_.height, index_.width, index_.channels});
  try {
    restart(first);
    if (fill(first, out)) return out;
    if (decoding_->from_start) fail_times(*source_);
  } catch (const Error&) {
    const bool from_start = !decoding_ || decoding_->from_start;
    decoding_.reset();
    if (from_start) throw;
  }
  decoding_ = std::make_unique<Decoding>(source_);
  if (!fill(first, out)) fail_times(*source_);
  return out;
}

}  // namespace convssm::io
