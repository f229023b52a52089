// Written by libpng's simplified API. Not read by it: there a gAMA chunk changes the samples, and a file that ends before
// its IEND is taken for whole. The full API reports errors by longjmp, which must not cross objects with destructors:
// the functions below that libpng may leave this way (run_*) hold plain values only; what they work on is owned by their
// callers.
#include "convssm/io/png.h"

#include <png.h>

#include <csetjmp>
#include <exception>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr int64_t max_side = 1 << 15;

// What a libpng callback needs, and where it leaves what went wrong.
struct Context {
  std::shared_ptr<const Source> source;
  uint64_t position = 0;
  std::string message;
  std::exception_ptr exception;  // of a callback of ours: carried over the C frames by hand
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* context = static_cast<Context*>(png_get_error_ptr(png));
  try {
    context->message = message;
  } catch (...) {
    context->exception = std::current_exception();
  }
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep out, size_t size) {
  auto* context = static_cast<Context*>(png_get_io_ptr(png));
  try {
    context->source->read(context->position, {reinterpret_cast<std::byte*>(out), size});
    context->position += size;
  } catch (...) {
    context->exception = std::current_exception();
  }
  if (context->exception) png_error(png, "cannot read");
}

struct PngReader {
  explicit PngReader(Context& context)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &context, on_error, on_warning)) {
    info = png ? png_create_info_struct(png) : nullptr;
    if (!info) {
      png_destroy_read_struct(&png, nullptr, nullptr);
      fail(ErrorKind::io, "libpng cannot be started");
    }
    png_set_read_fn(png, &context, on_read);
    png_set_user_limits(png, max_side, max_side);
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  png_structp png;
  png_infop info;
};

// The header, and the conversions to grey or RGB of 8 bits, or 16 in the byte order of this machine. `raw_row` is the size of a row as it is
// in the file.
bool run_read_header(png_structp png, png_infop info, bool keep_16, size_t* raw_row) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_info(png, info);
  *raw_row = png_get_rowbytes(png, info);
  png_set_expand(png);
  if (keep_16) {
    png_set_swap(png);
  } else {
    png_set_scale_16(png);
  }
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return true;
}

bool run_read_image(png_structp png, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

[[noreturn]] void rethrow(const Context& context) {
  if (context.exception) std::rethrow_exception(context.exception);
  context.source->fail(context.position, "not a valid PNG image: {}", context.message);
}

std::vector<png_bytep> row_pointers(uint8_t* pixels, int64_t height, int64_t stride) {
  std::vector<png_bytep> rows(static_cast<size_t>(height));
  for (int64_t y = 0; y < height; ++y) rows[static_cast<size_t>(y)] = pixels + y * stride;
  return rows;
}

// Deflate makes at most 1032 bytes of one, so a size beyond that is false whatever the header says.
void check_plausible(const Source& source, uint64_t raw_row, int64_t height) {
  const uint64_t raw = raw_row * static_cast<uint64_t>(height);
  if (raw / 1032 <= source.size()) return;
  source.fail(16, "an image of {} bytes cannot be in a PNG file of {} bytes", raw, source.size());
}

void check_image(const Image& image) {
  const auto inside = [](int64_t side) { return side > 0 && side <= max_side; };
  const bool size_ok = inside(image.width) && inside(image.height) && (image.channels == 1 || image.channels == 3);
  if (size_ok && std::ssize(image.pixels) == image.width * image.height * image.channels) return;
  fail(ErrorKind::usage,
       "[write_png] width and height must be 1 to {}, channels 1 or 3, pixels their product; got {} x {} x {} and {}",
       max_side, image.width, image.height, image.channels, image.pixels.size());
}

}  // namespace

void write_png(const std::string& path, const Image& image) {
  const std::string bytes = encode_png(image);
  replace_file(path, bytes);
}

std::string encode_png(const Image& image) {
  check_image(image);
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string bytes(size, '\0');
  if (!png_image_write_to_memory(&header, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr))
    fail(ErrorKind::io, "cannot encode a PNG image: {}", header.message);
  bytes.resize(size);
  return bytes;
}

Image read_png(const std::string& path) { return read_png(open_source(path)); }

namespace {

Array read_image(std::shared_ptr<const Source> source, bool keep_16) {
  Context context;
  context.source = std::move(source);
  PngReader reader(context);
  size_t raw_row = 0;
  if (!run_read_header(reader.png, reader.info, keep_16, &raw_row)) rethrow(context);
  const int64_t height = png_get_image_height(reader.png, reader.info);
  check_plausible(*context.source, raw_row, height);
  const DType dtype = png_get_bit_depth(reader.png, reader.info) == 16 ? DType::u16 : DType::u8;
  Array image =
      array_of_file(context.source->name(), dtype,
                    {height, png_get_image_width(reader.png, reader.info), png_get_channels(reader.png, reader.info)});
  const auto stride = static_cast<int64_t>(png_get_rowbytes(reader.png, reader.info));
  auto rows = row_pointers(reinterpret_cast<uint8_t*>(image.bytes().data()), height, stride);
  if (!run_read_image(reader.png, rows.data())) rethrow(context);
  return image;
}

}  // namespace

Image read_png(std::shared_ptr<const Source> source) {
  const Array image = read_image(std::move(source), false);
  const auto pixels = image.values<uint8_t>();
  return {image.shape()[1], image.shape()[0], image.shape()[2], {pixels.begin(), pixels.end()}};
}

Array read_png_samples(std::shared_ptr<const Source> source) { return read_image(std::move(source), true); }

}  // namespace convssm::io
