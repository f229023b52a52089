// libav reads through our Source, so a file that is cut short gives our errors with a byte offset. It gets no file name
// and one demuxer only: a hostile file cannot make it open others.
#include "convssm/io/video_demux.h"

#include <algorithm>
#include <vector>

namespace convssm::io::libav {

namespace {

int refuse_to_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) { return AVERROR(EPERM); }

bool is_video(const AVStream& stream) {
  constexpr int pictures = AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS | AV_DISPOSITION_STILL_IMAGE;
  return stream.codecpar->codec_type == AVMEDIA_TYPE_VIDEO && (stream.disposition & pictures) == 0;
}

}  // namespace

Demuxer::Demuxer(std::shared_ptr<const Source> source)
    : source_(std::move(source)),
      container_(container_of(*source_)),
      stream_(
          false, [this](uint8_t* bytes, int size) { return read(bytes, size); },
          [this](int64_t offset, int whence) { return seek_bytes(offset, whence); }) {
  format_ = avformat_alloc_context();
  require_memory(format_);
  format_->pb = stream_.context();
  format_->flags |= AVFMT_FLAG_CUSTOM_IO;
  format_->io_open = refuse_to_open;
  // Only this format, and no other files: libav would follow play lists to wherever they point.
  const int code = avformat_open_input(&format_, "", av_find_input_format(container_.demuxer), nullptr);
  check(code);  // on failure format_ is gone already
  try {
    look_into_streams();
    choose_track();
  } catch (...) {
    avformat_close_input(&format_);
    throw;
  }
}

// Frames are decoded to find out what the streams are, by decoders of libav's own: with the limits of ours.
void Demuxer::look_into_streams() {
  const unsigned count = format_->nb_streams;  // it may grow
  std::vector<AVDictionary*> options(count);
  for (AVDictionary*& one : options) av_dict_set_int(&one, "max_pixels", max_pixels, 0);
  const int code = avformat_find_stream_info(format_, options.data());
  for (AVDictionary*& one : options) av_dict_free(&one);
  check(code);
}

// Packets of the others are passed over without being read.
void Demuxer::choose_track() {
  const std::span streams(format_->streams, format_->nb_streams);
  for (const AVStream* stream : streams) {
    if (!is_video(*stream)) continue;
    const bool preferred = (stream->disposition & AV_DISPOSITION_DEFAULT) != 0;
    if (track_ < 0 ||
        (preferred && (streams[static_cast<size_t>(track_)]->disposition & AV_DISPOSITION_DEFAULT) == 0)) {
      track_ = stream->index;
    }
  }
  if (track_ < 0) fail("{} file without a video", container_.name);
  for (AVStream* stream : streams) {
    if (stream->index != track_) stream->discard = AVDISCARD_ALL;
  }
}

const int32_t* Demuxer::display_matrix() const {
  size_t size = 0;
  const uint8_t* data = av_stream_get_side_data(format_->streams[track_], AV_PKT_DATA_DISPLAYMATRIX, &size);
  return size < 9 * sizeof(int32_t) ? nullptr : reinterpret_cast<const int32_t*>(data);
}

bool Demuxer::next(AVPacket* packet) {
  while (true) {
    av_packet_unref(packet);
    const int code = av_read_frame(format_, packet);
    if (code == AVERROR_EOF) {
      stream_.rethrow();
      const int listed = avformat_index_get_entries_count(format_->streams[track_]);
      if (from_start_ && packets_ < listed) fail("the video is cut short: {} of {} frames are there", packets_, listed);
      return false;
    }
    check(code);
    if (packet->stream_index != track_) continue;
    if ((packet->flags & AV_PKT_FLAG_CORRUPT) != 0) fail("a part of the video is damaged");
    ++packets_;
    if (packet->size > 0) return true;  // in AVI files an empty one stands for a frame that is not there
  }
}

void Demuxer::seek(int64_t time) {
  from_start_ = false;
  check(av_seek_frame(format_, track_, time, AVSEEK_FLAG_BACKWARD));
}

Codec Demuxer::make_decoder() const {
  Codec decoder = strict_decoder(parameters().codec_id, &parameters());
  if (!decoder) fail("no decoder for its video ({})", avcodec_get_name(parameters().codec_id));
  return decoder;
}

int Demuxer::read(uint8_t* bytes, int size) {
  const auto part = static_cast<size_t>(std::min<uint64_t>(static_cast<uint64_t>(size), source_->size() - position_));
  if (part == 0) return AVERROR_EOF;
  source_->read(position_, std::as_writable_bytes(std::span(bytes, part)));
  position_ += part;
  return static_cast<int>(part);
}

int64_t Demuxer::seek_bytes(int64_t offset, int whence) {
  const auto size = static_cast<int64_t>(source_->size());
  if ((whence & ~AVSEEK_FORCE) == AVSEEK_SIZE) return size;
  if ((whence & ~AVSEEK_FORCE) != SEEK_SET || offset < 0 || offset > size) return AVERROR(EINVAL);
  position_ = static_cast<uint64_t>(offset);
  return offset;
}

}  // namespace convssm::io::libav
