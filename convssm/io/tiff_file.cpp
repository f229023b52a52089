// libtiff is C: exceptions must not pass through it, so that the callbacks keep them. It would print; its messages become ours.
// What it allocates by itself is bounded by the limit of base/file_memory.h, as what is allocated here.
#include "convssm/io/tiff_file.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <utility>

#include "convssm/base/file_memory.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr int64_t max_page_side = int64_t{1} << 20;
constexpr uint64_t own_memory = 1 << 20;  // of libtiff, whatever the limit is

std::optional<DType> dtype_of_samples(uint16_t format, uint16_t bits) {
  switch (format) {
    case SAMPLEFORMAT_UINT:
    case SAMPLEFORMAT_VOID:
      if (bits == 8) return DType::u8;
      if (bits == 16) return DType::u16;
      if (bits == 32) return DType::u32;
      if (bits == 64) return DType::u64;
      return std::nullopt;
    case SAMPLEFORMAT_INT:
      if (bits == 8) return DType::i8;
      if (bits == 16) return DType::i16;
      if (bits == 32) return DType::i32;
      if (bits == 64) return DType::i64;
      return std::nullopt;
    case SAMPLEFORMAT_IEEEFP:
      if (bits == 16) return DType::f16;
      if (bits == 32) return DType::f32;
      if (bits == 64) return DType::f64;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// How many bytes one byte can become at most.
uint64_t largest_ratio(uint16_t compression) {
  switch (compression) {
    case COMPRESSION_NONE:
      return 1;
    case COMPRESSION_PACKBITS:
      return 64;
    case COMPRESSION_LZW:
      return 4096;
    case COMPRESSION_DEFLATE:
    case COMPRESSION_ADOBE_DEFLATE:
      return 1032;
    default:
      return 1 << 16;
  }
}

}  // namespace

int TiffFile::on_error(TIFF*, void* self, const char*, const char* format, va_list arguments) {
  auto* context = static_cast<Context*>(self);
  try {
    char text[256];
    std::vsnprintf(text, sizeof text, format, arguments);
    if (context->message.empty()) context->message = in_quotes(text);
  } catch (...) {
    context->exception = std::current_exception();
  }
  return 1;  // nobody else is told
}

tmsize_t TiffFile::on_read(thandle_t self, void* out, tmsize_t size) {
  auto* context = static_cast<Context*>(self);
  const Source& source = *context->source;
  if (context->position >= source.size() || size <= 0) return 0;
  const auto part = std::min(static_cast<uint64_t>(size), source.size() - context->position);
  try {
    source.read(context->position, {static_cast<std::byte*>(out), part});
  } catch (...) {
    context->exception = std::current_exception();
    return -1;
  }
  context->position += part;
  return static_cast<tmsize_t>(part);
}

toff_t TiffFile::on_seek(thandle_t self, toff_t offset, int whence) {
  auto* context = static_cast<Context*>(self);
  const uint64_t from = whence == SEEK_CUR ? context->position : whence == SEEK_END ? context->source->size() : 0;
  return context->position = from + offset;
}

toff_t TiffFile::on_size(thandle_t self) { return static_cast<Context*>(self)->source->size(); }

TiffFile::TiffFile(std::shared_ptr<const Source> source) : context_(new Context{std::move(source)}) {
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  if (!options) convssm::fail(ErrorKind::io, "libtiff cannot be started");
  const auto limit = std::min<uint64_t>(file_memory_limit(), INT64_MAX / 2) + own_memory;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(limit));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, context_.get());
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, nullptr);
  file_.reset(TIFFClientOpenExt("", "rm", context_.get(), on_read, on_write, on_seek, on_close, on_size, nullptr,
                                nullptr, options.get()));
  if (!file_) fail_damaged();
}

void TiffFile::fail_damaged() {
  const std::string message = std::exchange(context_->message, {});
  fail("not a valid TIFF file: {}", message.empty() ? "it ends too early" : message);
}

bool TiffFile::next() {
  if (TIFFLastDirectory(file_.get())) return false;
  if (!TIFFReadDirectory(file_.get())) fail_damaged();
  return true;
}

void TiffFile::go_to(uint64_t place) {
  if (!TIFFSetSubDirectory(file_.get(), place)) fail_damaged();
}

template <typename T>
T TiffFile::number(uint32_t tag) const {
  T value = 0;
  TIFFGetFieldDefaulted(file_.get(), tag, &value);
  return value;
}

bool TiffFile::is_auxiliary() const {
  return (number<uint32_t>(TIFFTAG_SUBFILETYPE) & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0;
}

// Samples beyond the colours are channels too, unless they say how much shines through.
void TiffFile::choose_channels(TiffPage& page, uint16_t colours) const {
  page.samples = number<uint16_t>(TIFFTAG_SAMPLESPERPIXEL);
  if (page.samples < colours) fail("a page has {} samples for {} colours", page.samples, colours);
  uint16_t extras = 0;
  const uint16_t* kinds = nullptr;
  if (!TIFFGetField(file_.get(), TIFFTAG_EXTRASAMPLES, &extras, &kinds)) extras = 0;
  for (int64_t sample = 0; sample < page.samples; ++sample) {
    const int64_t extra = sample - (page.samples - extras);
    const uint16_t kind = extra < 0 ? uint16_t{EXTRASAMPLE_UNSPECIFIED} : kinds[extra];
    if (kind == EXTRASAMPLE_UNSPECIFIED || sample < colours) page.kept.push_back(sample);
  }
}

void TiffFile::check_plausible(const TiffPage& page) const {
  const uint64_t size = context_->source->size();
  const auto bytes = checked_byte_count(std::array{page.height, page.width, page.samples}, dtype_size(page.dtype));
  const uint64_t ratio = largest_ratio(number<uint16_t>(TIFFTAG_COMPRESSION));
  if (!bytes || *bytes / ratio > size) {
    fail("a page of {} x {} pixels cannot be in a file of {} bytes", page.height, page.width, size);
  }
}

TiffPage TiffFile::page() {
  TIFF* file = file_.get();
  TiffPage page;
  page.place = TIFFCurrentDirOffset(file);
  page.height = number<uint32_t>(TIFFTAG_IMAGELENGTH), page.width = number<uint32_t>(TIFFTAG_IMAGEWIDTH);
  if (page.height < 1 || page.width < 1 || page.height > max_page_side || page.width > max_page_side) {
    fail("a page of {} x {} pixels", page.height, page.width);
  }
  const auto format = number<uint16_t>(TIFFTAG_SAMPLEFORMAT), bits = number<uint16_t>(TIFFTAG_BITSPERSAMPLE);
  const auto dtype = dtype_of_samples(format, bits);
  if (!dtype)
    fail("samples of {} bits and format {} are not read; save it with 8 or 16 bits or as floats", bits, format);
  page.dtype = *dtype;
  const auto compression = number<uint16_t>(TIFFTAG_COMPRESSION);
  uint16_t colours = PHOTOMETRIC_MINISBLACK;  // has no default of libtiff
  TIFFGetField(file, TIFFTAG_PHOTOMETRIC, &colours);
  if (!TIFFIsCODECConfigured(compression)) fail("this libtiff cannot unpack its compression, number {}", compression);
  const bool converted = colours == PHOTOMETRIC_YCBCR && compression == COMPRESSION_JPEG;
  if (converted) TIFFSetField(file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  const bool is_grey = colours == PHOTOMETRIC_MINISBLACK || colours == PHOTOMETRIC_MINISWHITE;
  if (!is_grey && !converted && colours != PHOTOMETRIC_RGB) {
    fail("a page is neither grey nor RGB (photometric interpretation {}); save it as one of them", colours);
  }
  page.white_is_zero = colours == PHOTOMETRIC_MINISWHITE;
  if (page.white_is_zero && page.dtype != DType::u8 && page.dtype != DType::u16) {
    fail("a page of {} where 0 is white is not read; save it with 0 as black", dtype_name(page.dtype));
  }
  page.apart = number<uint16_t>(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE;
  choose_channels(page, is_grey ? 1 : 3);
  check_plausible(page);
  return page;
}

// A block of samples as they are stored to their places.
void TiffFile::put(const TiffPage& page, const Block& block, const std::byte* from, std::byte* out) const {
  const size_t item = dtype_size(page.dtype);
  const int64_t C = page.channels(), stored = page.apart ? 1 : page.samples;
  for (int64_t y = 0; y < block.height; ++y) {
    const std::byte* row = from + static_cast<size_t>(y * block.row) * item;
    std::byte* to = out + static_cast<size_t>(((block.y + y) * page.width + block.x) * C) * item;
    if (stored == C) {
      std::memcpy(to, row, static_cast<size_t>(block.width * C) * item);
      continue;
    }
    for (int64_t c = 0; c < C; ++c) {
      const int64_t sample = page.kept[static_cast<size_t>(c)];
      if (page.apart && sample != block.plane) continue;
      for (int64_t x = 0; x < block.width; ++x) {
        const int64_t at = page.apart ? x : x * stored + sample;
        std::memcpy(to + static_cast<size_t>(x * C + c) * item, row + static_cast<size_t>(at) * item, item);
      }
    }
  }
}

void TiffFile::read_strips(const TiffPage& page, int64_t plane, std::byte* out) {
  const int64_t rows = std::clamp<int64_t>(number<uint32_t>(TIFFTAG_ROWSPERSTRIP), 1, page.height);
  const int64_t row = page.width * (page.apart ? 1 : page.samples);
  const size_t item = dtype_size(page.dtype);
  require_file_memory(context_->source->name(), "a strip of a page", static_cast<uint64_t>(rows * row) * item);
  std::vector<std::byte> strip(static_cast<size_t>(rows * row) * item);
  for (int64_t y = 0; y < page.height; y += rows) {
    const int64_t part = std::min(rows, page.height - y);
    const auto size = static_cast<tmsize_t>(static_cast<size_t>(part * row) * item);
    if (TIFFVStripSize(file_.get(), static_cast<uint32_t>(part)) != size)
      fail("its strips have another size than its pixels");
    const uint32_t number = TIFFComputeStrip(file_.get(), static_cast<uint32_t>(y), static_cast<uint16_t>(plane));
    if (TIFFReadEncodedStrip(file_.get(), number, strip.data(), size) != size) fail_damaged();
    put(page, {0, y, page.width, part, row, plane}, strip.data(), out);
  }
}

void TiffFile::read_tiles(const TiffPage& page, int64_t plane, std::byte* out) {
  const int64_t height = number<uint32_t>(TIFFTAG_TILELENGTH), width = number<uint32_t>(TIFFTAG_TILEWIDTH);
  if (height < 1 || width < 1) fail("tiles of {} x {} pixels", height, width);
  const int64_t row = width * (page.apart ? 1 : page.samples);
  const auto bytes = checked_byte_count(std::array{height, row}, dtype_size(page.dtype)).value_or(UINT64_MAX);
  require_file_memory(context_->source->name(), "a tile of a page", bytes);
  if (TIFFTileSize64(file_.get()) != bytes) fail("its tiles have another size than its pixels");
  std::vector<std::byte> tile(bytes);
  for (int64_t y = 0; y < page.height; y += height) {
    for (int64_t x = 0; x < page.width; x += width) {
      const uint32_t number = TIFFComputeTile(file_.get(), static_cast<uint32_t>(x), static_cast<uint32_t>(y), 0,
                                              static_cast<uint16_t>(plane));
      const auto size = static_cast<tmsize_t>(bytes);
      if (TIFFReadEncodedTile(file_.get(), number, tile.data(), size) != size) fail_damaged();
      put(page, {x, y, std::min(width, page.width - x), std::min(height, page.height - y), row, plane}, tile.data(),
          out);
    }
  }
}

void TiffFile::read(const TiffPage& page, std::byte* out) {
  for (int64_t plane = 0; plane < (page.apart ? page.samples : 1); ++plane) {
    if (page.apart && std::ranges::find(page.kept, plane) == page.kept.end()) continue;
    if (TIFFIsTiled(file_.get())) {
      read_tiles(page, plane, out);
    } else {
      read_strips(page, plane, out);
    }
  }
  if (!page.white_is_zero) return;
  const auto bytes = static_cast<size_t>(page.height * page.width * page.channels()) * dtype_size(page.dtype);
  for (std::byte& byte : std::span(out, bytes)) byte = ~byte;  // the largest number less this one
}

}  // namespace convssm::io
