// Players want yuv420p, which needs an even size: the last line or column is repeated where it is odd. libav is told to
// be bit-exact, so the same frames give the same file. It writes through an AtomicFile and goes back in it for the
// sizes in the header; colours are tagged as SMPTE 170M, since an untagged video is shown differently by each player.
#include <cstring>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/io/libav.h"
#include "convssm/io/mp4.h"

extern "C" {
#include <libavutil/opt.h>
}

namespace convssm::io {
namespace {

using namespace libav;

constexpr int64_t max_side = 16384;

void require(int code, std::string_view what) {
  if (code < 0) fail(ErrorKind::io, "cannot {} a video file: {}", what, error_text(code));
}

int even(int64_t side) { return static_cast<int>(side + side % 2); }

libav::Frame make_frame(AVPixelFormat format, int width, int height) {
  libav::Frame frame(av_frame_alloc());
  require_memory(frame.get());
  frame->format = format;
  frame->width = width;
  frame->height = height;
  require(av_frame_get_buffer(frame.get(), 0), "get memory for");
  return frame;
}

// What a file of this ending is: libav's name of the container, and the encoder that is taken if libav has it. AVI says no times of
// frames, which MPEG-4 needs none of; WebM takes VP9 alone.
struct Container {
  const char *ending, *muxer, *encoder;
  AVCodecID otherwise;
};
constexpr Container containers[] = {{".mp4", "mp4", "libx264", AV_CODEC_ID_MPEG4},
                                    {".mkv", "matroska", "libx264", AV_CODEC_ID_MPEG4},
                                    {".avi", "avi", "mpeg4", AV_CODEC_ID_MPEG4},
                                    {".webm", "webm", "libvpx-vp9", AV_CODEC_ID_VP9}};

const Container& container_of(const std::string& path) {
  const std::string ending = file_ending(path);
  for (const Container& container : containers) {
    if (ending == container.ending) return container;
  }
  return containers[0];
}

Codec make_encoder(const VideoFormat& format, const Container& container, bool global_header) {
  const AVCodec* codec = avcodec_find_encoder_by_name(container.encoder);
  if (codec == nullptr) codec = avcodec_find_encoder(container.otherwise);
  if (codec == nullptr)
    fail(ErrorKind::io, "this libav has no encoder for {} files; write .gif or .npy", container.ending);
  Codec encoder(avcodec_alloc_context3(codec));
  require_memory(encoder.get());
  encoder->width = even(format.width * format.scale);
  encoder->height = even(format.height * format.scale);
  encoder->pix_fmt = AV_PIX_FMT_YUV420P;
  encoder->framerate = av_d2q(format.fps, 60000);  // MPEG-4 has 16 bits for it
  encoder->time_base = av_inv_q(encoder->framerate);
  encoder->colorspace = AVCOL_SPC_SMPTE170M;
  encoder->color_primaries = AVCOL_PRI_SMPTE170M;
  encoder->color_trc = AVCOL_TRC_SMPTE170M;
  encoder->color_range = AVCOL_RANGE_MPEG;
  encoder->flags |= AV_CODEC_FLAG_BITEXACT | (global_header ? AV_CODEC_FLAG_GLOBAL_HEADER : 0);
  if (codec->id == AV_CODEC_ID_H264) {
    av_opt_set(encoder->priv_data, "crf", "18", 0);
    av_opt_set(encoder->priv_data, "preset", "medium", 0);
  } else if (codec->id == AV_CODEC_ID_VP9) {
    av_opt_set(encoder->priv_data, "crf", "18", 0);
    av_opt_set(encoder->priv_data, "cpu-used", "4", 0);
    encoder->bit_rate = 0;  // whatever the quality takes
  } else {
    encoder->flags |= AV_CODEC_FLAG_QSCALE;
    encoder->global_quality = 2 * FF_QP2LAMBDA;
  }
  require(avcodec_open2(encoder.get(), codec, nullptr), "begin");
  return encoder;
}

}  // namespace

struct Mp4Writer::Encoder {
  Encoder(const std::string& path, const VideoFormat& video_format)
      : format(video_format),
        container(container_of(path)),
        file(path),
        stream(
            true, [this](uint8_t* bytes, int size) { return file.write(bytes, static_cast<size_t>(size)), size; },
            [this](int64_t offset, int whence) { return seek(offset, whence); }) {
    require(avformat_alloc_output_context2(&muxer, nullptr, container.muxer, nullptr), "begin");
    try {
      begin();
    } catch (...) {
      avformat_free_context(muxer);  // a constructor that throws has no destructor
      throw;
    }
  }
  ~Encoder() { avformat_free_context(muxer); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  int64_t seek(int64_t offset, int whence) {
    if (whence != SEEK_SET) return AVERROR(ENOSYS);
    file.seek(static_cast<uint64_t>(offset));
    return offset;
  }

  // An error of the file is more telling than what libav made of it.
  void check(int code, std::string_view what) const {
    stream.rethrow();
    require(code, what);
  }

  void begin() {
    codec = make_encoder(format, container, muxer->oformat->flags & AVFMT_GLOBALHEADER);
    AVStream* track = avformat_new_stream(muxer, nullptr);
    require_memory(track);
    track->time_base = codec->time_base;
    track->avg_frame_rate = codec->framerate;
    require(avcodec_parameters_from_context(track->codecpar, codec.get()), "begin");
    muxer->pb = stream.context();
    muxer->flags |= AVFMT_FLAG_BITEXACT | AVFMT_FLAG_CUSTOM_IO;
    check(avformat_write_header(muxer, nullptr), "begin");
    rgb = make_frame(AV_PIX_FMT_RGB24, codec->width, codec->height);
    yuv = make_frame(AV_PIX_FMT_YUV420P, codec->width, codec->height);
    converter =
        make_converter(codec->width, codec->height, AV_PIX_FMT_RGB24, AV_PIX_FMT_YUV420P, SWS_CS_SMPTE170M, false);
    packet.reset(av_packet_alloc());
    require_memory(converter.get()), require_memory(packet.get());
  }

  // The frame as RGB, scaled, with its last line and column repeated where the size is odd.
  void fill_rgb(std::span<const uint8_t> frame) {
    const auto channels = static_cast<size_t>(format.channels);
    const auto width = static_cast<size_t>(format.width * format.scale);
    std::vector<uint8_t> row(width * channels);
    for (int y = 0; y < codec->height; ++y) {
      scale_row(frame.data(), format, std::min(y / format.scale, format.height - 1), channels, row);
      uint8_t* out = rgb->data[0] + static_cast<ptrdiff_t>(y) * rgb->linesize[0];
      for (size_t x = 0; x < static_cast<size_t>(codec->width); ++x) {
        const uint8_t* pixel = &row[std::min(x, width - 1) * channels];
        for (size_t c = 0; c < 3; ++c) out[3 * x + c] = pixel[channels == 3 ? c : 0];
      }
    }
  }

  void write(std::span<const uint8_t> frame) {
    fill_rgb(frame);
    require(av_frame_make_writable(yuv.get()), "write");  // the encoder may still hold the last frame
    sws_scale(converter.get(), rgb->data, rgb->linesize, 0, codec->height, yuv->data, yuv->linesize);
    yuv->pts = frames++;
    encode(yuv.get());
  }

  // A null frame asks for all that the encoder still holds.
  void encode(const AVFrame* frame) {
    check(avcodec_send_frame(codec.get(), frame), "encode");
    while (true) {
      const int code = avcodec_receive_packet(codec.get(), packet.get());
      if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
      check(code, "encode");
      packet->stream_index = 0;
      if (packet->duration == 0) packet->duration = 1;
      av_packet_rescale_ts(packet.get(), codec->time_base, muxer->streams[0]->time_base);
      check(av_write_frame(muxer, packet.get()), "write");
      av_packet_unref(packet.get());
    }
  }

  void close() {
    encode(nullptr);
    check(av_write_trailer(muxer), "complete");
    avio_flush(stream.context());
    check(stream.context()->error, "complete");
    file.commit();
  }

  VideoFormat format;
  const Container& container;
  AtomicFile file;
  Stream stream;
  AVFormatContext* muxer = nullptr;
  Codec codec;
  libav::Frame rgb;
  libav::Frame yuv;
  Packet packet;
  Scaler converter;
  int64_t frames = 0;
};

Mp4Writer::Mp4Writer(const std::string& path, const VideoFormat& format) {
  check_format("Mp4Writer", format, max_side);
  silence();
  encoder_ = std::make_unique<Encoder>(path, format);
}

Mp4Writer::~Mp4Writer() = default;

void Mp4Writer::write(std::span<const uint8_t> frame) {
  if (!encoder_) fail(ErrorKind::usage, "[Mp4Writer] write() after close() or an error");
  check_frame("Mp4Writer", encoder_->format, frame.size());
  try {
    encoder_->write(frame);
  } catch (...) {
    encoder_.reset();
    throw;
  }
}

void Mp4Writer::close() {
  if (!encoder_) fail(ErrorKind::usage, "[Mp4Writer] close() after close() or an error");
  const auto encoder = std::move(encoder_);
  if (encoder->frames == 0) fail(ErrorKind::usage, "[Mp4Writer] an MP4 file must have at least one frame");
  encoder->close();
}

}  // namespace convssm::io
