// A TIFF file open in libtiff, and what a page of it is. Inside io/ only.
#pragma once

#include <tiffio.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

struct TiffPage {
  uint64_t place = 0;
  DType dtype = DType::u8;
  int64_t height = 0, width = 0;
  int64_t samples = 1;             // of a pixel as they are stored
  std::vector<int64_t> kept = {};  // those that are channels
  bool apart = false;              // a plane for each sample
  bool white_is_zero = false;

  int64_t channels() const { return std::ssize(kept); }
  bool fits(const TiffPage& other) const {
    return dtype == other.dtype && height == other.height && width == other.width && channels() == other.channels();
  }
};

class TiffFile {
 public:
  // FormatError if libtiff does not take it for one. The first page is the current one.
  explicit TiffFile(std::shared_ptr<const Source> source);

  // Makes the next page the current one; false behind the last.
  bool next();
  void go_to(uint64_t place);

  // Whether the current page is a small copy of another, or a mask.
  bool is_auxiliary() const;

  // What the current page is; readies it for read().
  TiffPage page();

  // The pixels of the current page, [H,W,C].
  void read(const TiffPage& page, std::byte* out);

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    if (context_->exception) std::rethrow_exception(context_->exception);
    context_->source->fail(context_->position, text, std::forward<Args>(args)...);
  }

 private:
  struct Context {
    std::shared_ptr<const Source> source;
    uint64_t position = 0;
    std::string message = {};                // of libtiff, the first since it was last asked for
    std::exception_ptr exception = nullptr;  // of a callback of ours: carried over the C frames by hand
  };
  struct Close {
    void operator()(TIFF* file) const { TIFFClose(file); }
  };
  struct Block {
    int64_t x, y, width, height;  // inside of the page
    int64_t row;                  // elements from one of its rows to the next
    int64_t plane;
  };

  static int on_error(TIFF*, void* self, const char* module, const char* format, va_list arguments);
  static int on_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }
  static tmsize_t on_read(thandle_t self, void* out, tmsize_t size);
  static tmsize_t on_write(thandle_t, void*, tmsize_t) { return -1; }
  static toff_t on_seek(thandle_t self, toff_t offset, int whence);
  static toff_t on_size(thandle_t self);
  static int on_close(thandle_t) { return 0; }

  template <typename T>
  T number(uint32_t tag) const;
  [[noreturn]] void fail_damaged();
  void choose_channels(TiffPage& page, uint16_t colours) const;
  void check_plausible(const TiffPage& page) const;
  void put(const TiffPage& page, const Block& block, const std::byte* from, std::byte* out) const;
  void read_strips(const TiffPage& page, int64_t plane, std::byte* out);
  void read_tiles(const TiffPage& page, int64_t plane, std::byte* out);

  std::unique_ptr<Context> context_;
  std::unique_ptr<TIFF, Close> file_;
};

}  // namespace convssm::io
