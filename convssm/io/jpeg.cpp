// The picture is one packet of libav's decoder, which fills what is missing at the end of a file with grey: that the mark of
// the end is there is looked for first.
#include "convssm/io/jpeg.h"

#include <algorithm>
#include <cstring>

#include "convssm/base/file_memory.h"
#include "convssm/io/libav_pixels.h"

namespace convssm::io {
namespace {

using namespace libav;

// Where the segments before the pixels end; they may hold a smaller picture, which has an end of its own.
size_t pixels_begin(std::string_view bytes) {
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<uint8_t>(bytes[at])); };
  size_t at = 2;
  while (at + 4 <= bytes.size() && byte(at) == 0xff && byte(at + 1) != 0xda) {
    at += byte(at + 1) == 0xff ? 1 : 2 + 256 * byte(at + 2) + byte(at + 3);  // bytes of 0xff may fill gaps
  }
  return std::min(at, bytes.size());
}

Packet packet_of(const Source& source) {
  require_file_memory(source.name(), "its bytes", source.size());
  if (source.size() < 4 || source.size() > (uint64_t{1} << 30)) source.fail(0, "not a JPEG picture");
  Packet packet(av_packet_alloc());
  require_memory(packet.get());
  if (av_new_packet(packet.get(), static_cast<int>(source.size())) < 0) require_memory(nullptr);
  source.read(0, std::as_writable_bytes(std::span(packet->data, source.size())));
  const std::string_view bytes(reinterpret_cast<const char*>(packet->data), source.size());
  if (!bytes.starts_with("\xff\xd8")) source.fail(0, "not a JPEG picture");
  if (bytes.find("\xff\xd9", pixels_begin(bytes)) == bytes.npos) source.fail(source.size(), "the picture is cut short");
  return packet;
}

Image image_of(const Source& source, const AVFrame& frame) {
  Image image{frame.width, frame.height, PixelConverter::channels(frame), {}};
  const auto bytes = static_cast<uint64_t>(image.width * image.height * image.channels);
  require_file_memory(source.name(), "its pixels", bytes);
  image.pixels.resize(bytes);
  if (PixelConverter converter; !converter.convert(frame, image.pixels.data())) {
    source.fail(0, "its pixels cannot be converted");
  }
  return image;
}

}  // namespace

Image read_jpeg(const std::string& path) { return read_jpeg(open_source(path)); }

Image read_jpeg(std::shared_ptr<const Source> source) {
  silence();
  const Packet packet = packet_of(*source);
  const Codec decoder = strict_decoder(AV_CODEC_ID_MJPEG, nullptr);
  if (!decoder) source->fail(0, "this libav has no decoder for JPEG pictures");
  const libav::Frame frame(av_frame_alloc());
  require_memory(frame.get());
  const auto check = [&](int code) {
    if (code < 0) source->fail(0, "not a valid JPEG picture: {}", error_text(code));
  };
  check(avcodec_send_packet(decoder.get(), packet.get()));
  check(avcodec_receive_frame(decoder.get(), frame.get()));
  if (frame->decode_error_flags != 0 || (frame->flags & AV_FRAME_FLAG_CORRUPT) != 0) {
    source->fail(0, "the picture is damaged");
  }
  return image_of(*source, *frame);
}

}  // namespace convssm::io
