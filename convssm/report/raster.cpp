// librsvg draws to a cairo surface of 32-bit pixels, of which the three colours are copied. The font is named, so that
// pictures of two machines agree.
#include "convssm/report/raster.h"

#include <cairo.h>
#include <fmt/format.h>
#include <librsvg/rsvg.h>

#include <memory>

#include "convssm/base/error.h"
#include "convssm/report/numbers.h"

namespace convssm::report {
namespace {

constexpr double kLetter = 7.0;

template <auto release>
struct Release {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};
using Surface = std::unique_ptr<cairo_surface_t, Release<cairo_surface_destroy>>;
using Context = std::unique_ptr<cairo_t, Release<cairo_destroy>>;
using Handle = std::unique_ptr<RsvgHandle, Release<g_object_unref>>;

void check(bool good, GError* error) {
  if (good) return;
  const std::string reason = error == nullptr ? "no reason given" : error->message;
  g_clear_error(&error);
  fail(ErrorKind::data, "[picture] librsvg cannot draw it: {}", reason);
}

Surface render(const std::string& svg, int width, int height) {
  GError* error = nullptr;
  const Handle handle(rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error));
  check(handle != nullptr, error);
  Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height));
  const Context context(cairo_create(surface.get()));
  const RsvgRectangle all{0, 0, static_cast<double>(width), static_cast<double>(height)};
  check(rsvg_handle_render_document(handle.get(), context.get(), &all, &error) != 0, error);
  cairo_surface_flush(surface.get());
  check(cairo_surface_status(surface.get()) == CAIRO_STATUS_SUCCESS, nullptr);
  return surface;
}

}  // namespace

// The light colours of the page's style sheet: pictures have no reader whose system could be asked.
const char* const picture_style = R"css(
text { font-family: "DejaVu Sans", sans-serif; font-size: 12px; fill: #5d6778; }
.title { font-size: 15px; font-weight: bold; fill: #1c2330; }
.grid { stroke: #e8ebf0; stroke-width: 1; }
.axis { stroke: #dfe3ea; stroke-width: 1.5; }
.line { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.faint { stroke-width: 1; opacity: .28; }
.dotted { stroke-dasharray: 1.5 4; stroke-linecap: butt; }
.dashed { stroke-dasharray: 6 4; stroke-linecap: butt; }
.dot { fill: currentColor; }
.c0 { color: #1f6feb; } .c1 { color: #d9541e; } .c2 { color: #2a9d5c; } .c3 { color: #9b4fd3; }
.c4 { color: #b8860b; } .c5 { color: #d6407f; } .c6 { color: #1a96a8; } .c7 { color: #6b7280; }
)css";

std::string svg_document(int width, int height, const std::string& elements) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"{0}\" "
      "height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n<style>{2}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{3}</svg>\n",
      width, height, picture_style, elements);
}

io::Image rasterize(const std::string& svg, int width, int height) {
  const Surface surface = render(svg, width, height);
  const unsigned char* data = cairo_image_surface_get_data(surface.get());
  const int stride = cairo_image_surface_get_stride(surface.get());
  io::Image image{width, height, 3, {}};
  image.pixels.reserve(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  for (int y = 0; y < height; ++y) {
    const auto* row = reinterpret_cast<const uint32_t*>(data + static_cast<ptrdiff_t>(y) * stride);
    for (int x = 0; x < width; ++x) {
      for (const int shift : {16, 8, 0}) image.pixels.push_back(static_cast<uint8_t>(row[x] >> shift));
    }
  }
  return image;
}

double text_width(const std::string& text) { return kLetter * static_cast<double>(letters(text)); }

}  // namespace convssm::report
