// libav is C: exceptions must not pass through it, so the callbacks keep them and rethrow() throws them when libav has
// returned. It would also log to stderr by itself; that is switched off, as its errors come back as codes.
#include "convssm/io/libav.h"

#include "convssm/base/error.h"

namespace convssm::io::libav {

std::string error_text(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(code, text, sizeof text);
  return text;
}

void silence() {
  static const bool once = (av_log_set_level(AV_LOG_QUIET), true);
  static_cast<void>(once);
}

void require_memory(const void* object) {
  if (object == nullptr) fail(ErrorKind::io, "libav has no memory for a video");
}

Scaler make_converter(int width, int height, AVPixelFormat from, AVPixelFormat to, int colours, bool full_range) {
  constexpr int exact = SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP;
  Scaler scaler(sws_getContext(width, height, from, width, height, to, exact, nullptr, nullptr, nullptr));
  if (!scaler) return scaler;
  const int* table = sws_getCoefficients(colours);
  const bool to_rgb = to == AV_PIX_FMT_RGB24 || to == AV_PIX_FMT_GRAY8;
  constexpr int one = 1 << 16;
  sws_setColorspaceDetails(scaler.get(), table, to_rgb ? full_range : 1, table, to_rgb ? 1 : full_range, 0, one, one);
  return scaler;
}

Stream::Stream(bool writes, Transfer transfer, Seek seek) : transfer_(std::move(transfer)), seek_(std::move(seek)) {
  constexpr int buffer_size = 1 << 16;
  auto* buffer = static_cast<uint8_t*>(av_malloc(buffer_size));
  require_memory(buffer);
  context_ = avio_alloc_context(buffer, buffer_size, writes, this, writes ? nullptr : on_transfer,
                                writes ? on_transfer : nullptr, on_seek);
  if (context_ == nullptr) av_free(buffer);
  require_memory(context_);
}

Stream::~Stream() {
  av_freep(&context_->buffer);
  avio_context_free(&context_);
}

int Stream::on_transfer(void* self, uint8_t* bytes, int size) {
  auto* stream = static_cast<Stream*>(self);
  try {
    return stream->transfer_(bytes, size);
  } catch (...) {
    stream->exception_ = std::current_exception();
    return AVERROR_EXTERNAL;
  }
}

int64_t Stream::on_seek(void* self, int64_t offset, int whence) {
  auto* stream = static_cast<Stream*>(self);
  try {
    return stream->seek_(offset, whence);
  } catch (...) {
    stream->exception_ = std::current_exception();
    return AVERROR_EXTERNAL;
  }
}

}  // namespace convssm::io::libav
