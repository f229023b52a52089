// Two passes: the first skips the compressed pixels and finds how many frames there are and whether they are grey, so
// that the second draws straight into the result.
#include <gif_lib.h>

#include <algorithm>
#include <exception>

#include "convssm/base/error.h"
#include "convssm/io/gif.h"

namespace convssm::io {
namespace {

class Decoder {
 public:
  explicit Decoder(const Source& source) : source_(source), buffer_(1 << 16) {
    int error = 0;
    gif_ = DGifOpen(this, on_read, &error);
    if (gif_ != nullptr) return;
    if (exception_) std::rethrow_exception(exception_);
    source.fail(consumed_, "not a valid GIF file: {}", text_of(error));
  }
  ~Decoder() {
    int error = 0;
    if (gif_ != nullptr) DGifCloseFile(gif_, &error);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  GifFileType& gif() { return *gif_; }
  GifFileType* operator->() { return gif_; }
  operator GifFileType*() { return gif_; }

  // What giflib returned.
  void require(int status) {
    if (exception_) std::rethrow_exception(exception_);
    if (status == GIF_ERROR) fail("not a valid GIF file: {}", text_of(gif_->Error));
  }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
    source_.fail(consumed_, text, std::forward<Args>(args)...);
  }

 private:
  static std::string text_of(int error) {
    const char* text = GifErrorString(error);
    return text == nullptr ? "it is damaged" : text;
  }

  static int on_read(GifFileType* gif, GifByteType* out, int size) {
    auto* self = static_cast<Decoder*>(gif->UserData);
    try {
      return self->read(out, static_cast<size_t>(size));
    } catch (...) {
      self->exception_ = std::current_exception();
      return 0;
    }
  }

  // Up to `size` bytes; fewer only at the end.
  int read(uint8_t* out, size_t size) {
    size_t done = 0;
    while (done < size) {
      if (position_ == filled_ && !fill()) break;
      const size_t part = std::min(size - done, filled_ - position_);
      std::copy_n(reinterpret_cast<const uint8_t*>(buffer_.data()) + position_, part, out + done);
      position_ += part;
      consumed_ += part;
      done += part;
    }
    return static_cast<int>(done);
  }

  bool fill() {
    filled_ = static_cast<size_t>(std::min<uint64_t>(buffer_.size(), source_.size() - consumed_));
    position_ = 0;
    source_.read(consumed_, std::span(buffer_).first(filled_));
    return filled_ > 0;
  }

  const Source& source_;
  std::vector<std::byte> buffer_;
  size_t position_ = 0;
  size_t filled_ = 0;
  uint64_t consumed_ = 0;
  GifFileType* gif_ = nullptr;
  std::exception_ptr exception_;
};

// Calls on_control for each graphic control extension and on_image for each image, whose pixels it must take.
template <typename OnControl, typename OnImage>
void for_each_image(Decoder& gif, const OnControl& on_control, const OnImage& on_image) {
  for (GifRecordType type = UNDEFINED_RECORD_TYPE; type != TERMINATE_RECORD_TYPE;) {
    gif.require(DGifGetRecordType(gif, &type));
    if (type == IMAGE_DESC_RECORD_TYPE) {
      gif.require(DGifGetImageHeader(gif));  // unlike DGifGetImageDesc it keeps no list
      const GifImageDesc& image = gif->Image;
      if (image.Width <= 0 || image.Height <= 0) gif.fail("a frame is {} x {} pixels", image.Height, image.Width);
      if (image.Left + image.Width > gif->SWidth || image.Top + image.Height > gif->SHeight) {
        gif.fail("a frame of {} x {} at ({}, {}) leaves the picture of {} x {}", image.Height, image.Width, image.Top,
                 image.Left, gif->SHeight, gif->SWidth);
      }
      on_image();
    } else if (type == EXTENSION_RECORD_TYPE) {
      int code = 0;
      GifByteType* block = nullptr;
      gif.require(DGifGetExtension(gif, &code, &block));
      if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr) {
        GraphicsControlBlock control{};
        if (DGifExtensionToGCB(block[0], block + 1, &control) == GIF_ERROR) {
          gif.fail("a graphic control extension has {} bytes, not 4", block[0]);
        }
        on_control(control);
      }
      while (block != nullptr) gif.require(DGifGetExtensionNext(gif, &block));
    }
  }
}

const ColorMapObject& palette_of(Decoder& gif) {
  const ColorMapObject* map = gif->Image.ColorMap != nullptr ? gif->Image.ColorMap : gif->SColorMap;
  if (map == nullptr) gif.fail("a frame has no palette");
  return *map;
}

bool is_grey(const ColorMapObject& map) {
  return std::all_of(map.Colors, map.Colors + map.ColorCount,
                     [](const GifColorType& c) { return c.Red == c.Green && c.Green == c.Blue; });
}

std::vector<int64_t> find_shape(const std::shared_ptr<const Source>& source) {
  Decoder gif(*source);
  int64_t frames = 0;
  bool grey = true;
  for_each_image(
      gif, [](const GraphicsControlBlock&) {},
      [&] {
        ++frames;
        grey = grey && is_grey(palette_of(gif));
        int code_size = 0;
        GifByteType* block = nullptr;
        gif.require(DGifGetCode(gif, &code_size, &block));
        while (block != nullptr) gif.require(DGifGetCodeNext(gif, &block));
      });
  if (frames == 0) gif.fail("a GIF file without any frame");
  std::vector<int64_t> shape = {frames, gif->SHeight, gif->SWidth, grey ? 1 : 3};
  return shape;
}

// The picture that frames are drawn on, [H,W,C].
class Canvas {
 public:
  explicit Canvas(const std::vector<int64_t>& shape)
      : width_(static_cast<size_t>(shape[2])),
        channels_(static_cast<size_t>(shape[3])),
        pixels_(static_cast<size_t>(shape[1]) * width_ * channels_) {}

  const std::vector<uint8_t>& pixels() const { return pixels_; }

  void draw(Decoder& gif, const GraphicsControlBlock& control) {
    undo();
    disposal_ = control.DisposalMode;
    left_ = static_cast<size_t>(gif->Image.Left), top_ = static_cast<size_t>(gif->Image.Top);
    columns_ = static_cast<size_t>(gif->Image.Width), rows_ = static_cast<size_t>(gif->Image.Height);
    if (disposal_ == DISPOSE_PREVIOUS) before_ = pixels_;
    std::vector<GifPixelType> line(columns_);
    const auto draw_rows = [&](size_t first, size_t step) {
      for (size_t y = first; y < rows_; y += step) {
        gif.require(DGifGetLine(gif, line.data(), gif->Image.Width));
        draw_line(gif, y, line, control.TransparentColor);
      }
    };
    if (!gif->Image.Interlace) return draw_rows(0, 1);
    draw_rows(0, 8), draw_rows(4, 8), draw_rows(2, 4), draw_rows(1, 2);
  }

 private:
  // What the last frame asked for, before the next one is drawn.
  void undo() {
    if (disposal_ == DISPOSE_PREVIOUS) pixels_ = before_;
    if (disposal_ != DISPOSE_BACKGROUND) return;
    for (size_t y = 0; y < rows_; ++y) std::fill_n(at(y), columns_ * channels_, uint8_t{0});
  }

  uint8_t* at(size_t y) { return &pixels_[((top_ + y) * width_ + left_) * channels_]; }

  void draw_line(Decoder& gif, size_t y, std::span<const GifPixelType> line, int transparent) {
    const ColorMapObject& map = palette_of(gif);
    uint8_t* out = at(y);
    for (const GifPixelType index : line) {
      if (index != transparent) {
        if (index >= map.ColorCount) gif.fail("a pixel has colour {} of a palette of {}", index, map.ColorCount);
        const GifColorType& colour = map.Colors[index];
        out[0] = colour.Red;
        if (channels_ == 3) out[1] = colour.Green, out[2] = colour.Blue;
      }
      out += channels_;
    }
  }

  size_t width_;
  size_t channels_;
  std::vector<uint8_t> pixels_;
  std::vector<uint8_t> before_;
  int disposal_ = DISPOSAL_UNSPECIFIED;
  size_t left_ = 0, top_ = 0, columns_ = 0, rows_ = 0;  // of the last frame
};

}  // namespace

Array read_gif(const std::string& path) { return read_gif(open_source(path)); }

Array read_gif(std::shared_ptr<const Source> source) {
  const std::vector<int64_t> shape = find_shape(source);
  const auto drawn_on = 2 * static_cast<uint64_t>(shape[1] * shape[2] * shape[3]);
  Array array = array_of_file(source->name(), DType::u8, shape, drawn_on);
  Decoder gif(*source);
  Canvas canvas(array.shape());
  const GraphicsControlBlock no_control{DISPOSAL_UNSPECIFIED, false, 0, NO_TRANSPARENT_COLOR};
  GraphicsControlBlock control = no_control;
  auto out = array.values<uint8_t>().begin();
  for_each_image(
      gif, [&](const GraphicsControlBlock& next) { control = next; },
      [&] {
        canvas.draw(gif, control);
        control = no_control;
        out = std::ranges::copy(canvas.pixels(), out).out;
      });
  return array;
}

}  // namespace convssm::io
