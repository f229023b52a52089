// giflib is C and must not see exceptions: an error of the file below is kept and thrown when giflib has returned.
#include <gif_lib.h>

#include <cmath>
#include <exception>
#include <functional>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/io/gif.h"
#include "convssm/io/palette.h"

namespace convssm::io {
namespace {

constexpr int64_t max_side = 0xffff;
constexpr int shortest_delay = 2;

struct FreeMap {
  void operator()(ColorMapObject* map) const { GifFreeMapObject(map); }
};
using Map = std::unique_ptr<ColorMapObject, FreeMap>;

Map make_map(std::span<const Colour> colours) {
  int size = 2;  // a power of 2
  while (size < std::ssize(colours)) size *= 2;
  Map map(GifMakeMapObject(size, nullptr));
  if (!map) fail(ErrorKind::io, "no memory for the palette of a GIF file");
  for (size_t i = 0; i < static_cast<size_t>(size); ++i) {
    const Colour colour = i < colours.size() ? colours[i] : Colour{};
    map->Colors[i] = {colour[0], colour[1], colour[2]};
  }
  return map;
}

Map grey_map() {
  std::vector<Colour> colours;
  for (int i = 0; i < 256; ++i) {
    const auto grey = static_cast<uint8_t>(i);
    colours.push_back({grey, grey, grey});
  }
  return make_map(colours);
}

}  // namespace

struct GifWriter::Encoder {
  using Put = std::function<void(const GifByteType* bytes, size_t size)>;

  Encoder(Put to, const VideoFormat& video_format, bool loop)
      : put(std::move(to)), format(video_format), row(static_cast<size_t>(format.width * format.scale)) {
    int error = 0;
    gif = EGifOpen(this, on_write, &error);
    if (gif == nullptr) fail(ErrorKind::io, "giflib cannot be started: {}", GifErrorString(error));
    try {
      begin(loop);
    } catch (...) {
      close_gif();  // a constructor that throws has no destructor
      throw;
    }
  }
  ~Encoder() { close_gif(); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  static int on_write(GifFileType* gif, const GifByteType* bytes, int size) {
    auto* self = static_cast<Encoder*>(gif->UserData);
    try {
      self->put(bytes, static_cast<size_t>(size));
      return size;
    } catch (...) {
      self->exception = std::current_exception();
      return 0;
    }
  }

  void require(int status) const {
    if (exception) std::rethrow_exception(exception);
    if (status == GIF_ERROR) fail(ErrorKind::io, "cannot encode a GIF file: {}", GifErrorString(gif->Error));
  }

  int close_gif() {
    int error = 0;
    const int status = gif == nullptr ? GIF_OK : EGifCloseFile(gif, &error);
    gif = nullptr;
    return status;
  }

  void begin(bool loop) {
    EGifSetGifVersion(gif, true);
    const Map map = format.channels == 1 ? grey_map() : nullptr;
    require(EGifPutScreenDesc(gif, width(), height(), 8, 0, map.get()));
    if (!loop) return;
    const GifByteType forever[] = {1, 0, 0};
    require(EGifPutExtensionLeader(gif, APPLICATION_EXT_FUNC_CODE));
    require(EGifPutExtensionBlock(gif, 11, "NETSCAPE2.0"));
    require(EGifPutExtensionBlock(gif, sizeof forever, forever));
    require(EGifPutExtensionTrailer(gif));
  }

  int width() const { return static_cast<int>(format.width * format.scale); }
  int height() const { return static_cast<int>(format.height * format.scale); }

  // Rounded so that errors do not add up: 24 frames per second are 4, 4, 5, 4, ... hundredths.
  int next_delay() {
    const auto end = std::llround(100.0 * static_cast<double>(frames + 1) / format.fps);
    const auto delay = end - std::llround(100.0 * static_cast<double>(frames) / format.fps);
    return static_cast<int>(std::clamp<long long>(delay, shortest_delay, 0xffff));
  }

  void write(std::span<const uint8_t> frame) {
    Map map;
    const uint8_t* pixels = frame.data();
    if (format.channels == 3) {
      index_colours(frame, indexed);
      map = make_map(indexed.palette);
      pixels = indexed.pixels.data();
    }
    const GraphicsControlBlock control{DISPOSE_DO_NOT, false, next_delay(), NO_TRANSPARENT_COLOR};
    GifByteType extension[4];
    require(EGifPutExtension(gif, GRAPHICS_EXT_FUNC_CODE, static_cast<int>(EGifGCBToExtension(&control, extension)),
                             extension));
    require(EGifPutImageDesc(gif, 0, 0, width(), height(), false, map.get()));
    for (int64_t y = 0; y < format.height; ++y) {
      for (int64_t i = 0; i < format.scale; ++i) {
        scale_row(pixels, format, y, 1, row);  // again for each line: giflib may change it
        require(EGifPutLine(gif, row.data(), width()));
      }
    }
    ++frames;
  }

  Put put;
  VideoFormat format;
  GifFileType* gif = nullptr;
  IndexedFrame indexed;
  std::vector<uint8_t> row;
  int64_t frames = 0;
  std::exception_ptr exception;
};

GifWriter::GifWriter(const std::string& path, const VideoFormat& format, bool loop) {
  check_format("GifWriter", format, max_side);
  file_ = std::make_unique<AtomicFile>(path);
  const auto put = [file = file_.get()](const GifByteType* bytes, size_t size) { file->write(bytes, size); };
  encoder_ = std::make_unique<Encoder>(put, format, loop);
}

GifWriter::GifWriter(std::string* out, const VideoFormat& format, bool loop) {
  check_format("GifWriter", format, max_side);
  const auto put = [out](const GifByteType* bytes, size_t size) { out->append(bytes, bytes + size); };
  encoder_ = std::make_unique<Encoder>(put, format, loop);
}

GifWriter::~GifWriter() = default;

void GifWriter::write(std::span<const uint8_t> frame) {
  if (!encoder_) fail(ErrorKind::usage, "[GifWriter] write() after close() or an error");
  check_frame("GifWriter", encoder_->format, frame.size());
  try {
    encoder_->write(frame);
  } catch (...) {
    encoder_.reset();
    throw;
  }
}

void GifWriter::close() {
  if (!encoder_) fail(ErrorKind::usage, "[GifWriter] close() after close() or an error");
  const auto encoder = std::move(encoder_);
  if (encoder->frames == 0) fail(ErrorKind::usage, "[GifWriter] a GIF file must have at least one frame");
  const int status = encoder->close_gif();
  if (encoder->exception) std::rethrow_exception(encoder->exception);
  if (status == GIF_ERROR) fail(ErrorKind::io, "cannot complete a GIF file");
  if (file_) file_->commit();
}

}  // namespace convssm::io
