// What the readers of videos and the MP4 writer share of libav: owners of its objects, errors as texts, silence. Inside io/ only.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace convssm::io::libav {

template <auto release>
struct Release {
  template <typename T>
  void operator()(T* object) const {
    if constexpr (std::is_invocable_v<decltype(release), T**>)
      release(&object);
    else
      release(object);
  }
};

using Codec = std::unique_ptr<AVCodecContext, Release<avcodec_free_context>>;
using Frame = std::unique_ptr<AVFrame, Release<av_frame_free>>;
using Packet = std::unique_ptr<AVPacket, Release<av_packet_free>>;
using Scaler = std::unique_ptr<SwsContext, Release<sws_freeContext>>;

// The reason behind a negative result.
std::string error_text(int code);

// libav writes to stderr by itself; called before anything of it is used.
void silence();

// Error(io) if libav had no memory for the object.
void require_memory(const void* object);

// Converts pixels without a change of size. `colours` is an AVCOL_SPC number.
Scaler make_converter(int width, int height, AVPixelFormat from, AVPixelFormat to, int colours, bool full_range);

// libav's way to the bytes of a file, by callbacks that may throw: the exception is kept and thrown by rethrow() when
// libav has returned, for it is C and must not see it.
class Stream {
 public:
  using Transfer = std::function<int(uint8_t* bytes, int size)>;
  using Seek = std::function<int64_t(int64_t offset, int whence)>;  // AVSEEK_SIZE too

  Stream(bool writes, Transfer transfer, Seek seek);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  AVIOContext* context() { return context_; }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  static int on_transfer(void* self, uint8_t* bytes, int size);
  static int64_t on_seek(void* self, int64_t offset, int whence);

  Transfer transfer_;
  Seek seek_;
  AVIOContext* context_ = nullptr;
  std::exception_ptr exception_;
};

}  // namespace convssm::io::libav
