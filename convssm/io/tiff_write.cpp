// libtiff reads back what it has written to link the pages, so the file grows by its name in a folder beside its final place
// (base/staged_folder.h).
#include "convssm/io/tiff_write.h"

#include <tiffio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/staged_folder.h"

namespace convssm::io {
namespace {

constexpr const char* file_name = "pages.tif";

uint16_t format_of(DType dtype) {
  switch (dtype) {
    case DType::bool8:
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
      return SAMPLEFORMAT_UINT;
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return SAMPLEFORMAT_INT;
    case DType::f16:
    case DType::f32:
    case DType::f64:
      return SAMPLEFORMAT_IEEEFP;
    default:
      fail(ErrorKind::usage, "[TiffWriter] TIFF has no {}; write f32", dtype_name(dtype));
  }
}

int be_silent(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct CloseTiff {
  void operator()(TIFF* file) const { TIFFClose(file); }
};

}  // namespace

struct TiffWriter::File {
  File(const std::string& where, DType type, int64_t rows, int64_t columns, int64_t samples)
      : path(where), staged(where), dtype(type), height(rows), width(columns), channels(samples) {
    format_of(dtype);
    errno = 0;
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options, be_silent, nullptr);
    TIFFOpenOptionsSetWarningHandlerExtR(options, be_silent, nullptr);
    tiff.reset(TIFFOpenExt(staged->path(file_name).c_str(), "w8", options));
    TIFFOpenOptionsFree(options);
    require(tiff != nullptr);
  }

  void require(bool done) const {
    const int reason = errno;
    if (!done)
      fail(ErrorKind::io, "cannot write '{}': {}", path,
           reason != 0 ? std::strerror(reason) : "libtiff gives no reason");
  }

  template <typename Value>
  void set(uint32_t tag, Value value) {
    require(TIFFSetField(tiff.get(), tag, value) == 1);
  }

  void write(const std::byte* page) {
    errno = 0;
    const auto size = dtype_size(dtype);
    set(TIFFTAG_IMAGEWIDTH, static_cast<uint32_t>(width));
    set(TIFFTAG_IMAGELENGTH, static_cast<uint32_t>(height));
    set(TIFFTAG_BITSPERSAMPLE, static_cast<int>(8 * size));
    set(TIFFTAG_SAMPLEFORMAT, static_cast<int>(format_of(dtype)));
    set(TIFFTAG_SAMPLESPERPIXEL, static_cast<int>(channels));
    set(TIFFTAG_PLANARCONFIG, static_cast<int>(PLANARCONFIG_CONTIG));
    set(TIFFTAG_PHOTOMETRIC, static_cast<int>(channels == 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK));
    const auto extra = static_cast<size_t>(channels == 3 ? 0 : channels - 1);
    const std::vector<uint16_t> kinds(extra, EXTRASAMPLE_UNSPECIFIED);
    if (extra > 0) require(TIFFSetField(tiff.get(), TIFFTAG_EXTRASAMPLES, static_cast<int>(extra), kinds.data()) == 1);
    set(TIFFTAG_COMPRESSION, static_cast<int>(COMPRESSION_ADOBE_DEFLATE));
    set(TIFFTAG_ROWSPERSTRIP, static_cast<uint32_t>(height));
    // libtiff may turn the bytes it is given: it gets its own.
    const auto bytes = static_cast<size_t>(height * width * channels) * size;
    buffer.assign(page, page + bytes);
    require(TIFFWriteEncodedStrip(tiff.get(), 0, buffer.data(), static_cast<tmsize_t>(bytes)) >= 0);
    require(TIFFWriteDirectory(tiff.get()) == 1);
  }

  void close() {
    tiff.reset();
    staged->commit_file(file_name);
    staged.reset();
  }

  std::string path;
  std::optional<StagedFolder> staged;  // until the file is complete
  std::unique_ptr<TIFF, CloseTiff> tiff;
  DType dtype;
  int64_t height, width, channels;
  std::vector<std::byte> buffer;
};

TiffWriter::TiffWriter(const std::string& path, DType dtype, int64_t height, int64_t width, int64_t channels)
    : file_(std::make_unique<File>(path, dtype, height, width, channels)) {}
TiffWriter::~TiffWriter() = default;

void TiffWriter::write(const Array& pages) {
  const std::vector<int64_t>& s = pages.shape();
  if (s.size() != 4 || pages.dtype() != file_->dtype || s[1] != file_->height || s[2] != file_->width ||
      s[3] != file_->channels) {
    fail(ErrorKind::usage, "[TiffWriter] pages must be {} [T,{},{},{}], got {} {}", dtype_name(file_->dtype),
         file_->height, file_->width, file_->channels, dtype_name(pages.dtype()), shape_text(s));
  }
  const size_t bytes = pages.byte_count() / static_cast<size_t>(std::max<int64_t>(s[0], 1));
  for (int64_t t = 0; t < s[0]; ++t) file_->write(pages.bytes().data() + static_cast<size_t>(t) * bytes);
}

void TiffWriter::close() { file_->close(); }

}  // namespace convssm::io
