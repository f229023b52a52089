#include "convssm/report/picture.h"

#include <cairo.h>
#include <fmt/format.h>
#include <librsvg/rsvg.h>

#include <cmath>
#include <memory>

#include "convssm/base/error.h"
#include "convssm/report/html.h"
#include "convssm/report/plot.h"
#include "convssm/report/style.h"

namespace convssm::report {
namespace {

constexpr double kMargin = 16, kRow = 19, kTitle = 22, kScale = 2;
constexpr double kLetter = 7.0, kMark = 22, kGap = 18;  // of the legend: a letter, the line before a name, between two

// The light colours of the page's style sheet: pictures have no reader whose system could be asked.
constexpr const char* kStyle = R"css(
text { font-family: "DejaVu Sans", sans-serif; font-size: 12px; fill: #5d6778; }
.title { font-size: 15px; font-weight: bold; fill: #1c2330; }
.grid { stroke: #e8ebf0; stroke-width: 1; }
.axis { stroke: #dfe3ea; stroke-width: 1.5; }
.line { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.faint { stroke-width: 1; opacity: .28; }
.dashed { stroke-dasharray: 6 4; stroke-linecap: butt; }
.dot { fill: currentColor; }
.c0 { color: #1f6feb; } .c1 { color: #d9541e; } .c2 { color: #2a9d5c; } .c3 { color: #9b4fd3; }
.c4 { color: #b8860b; } .c5 { color: #d6407f; } .c6 { color: #1a96a8; } .c7 { color: #6b7280; }
)css";

double letters(const std::string& text) {
  double count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

struct Block {
  std::string elements;
  double height = 0;
};

Block draw_title(const Chart& chart, const std::string& hint) {
  Block block{fmt::format("<text class=\"title\" x=\"0\" y=\"14\">{}</text>\n", escape(chart.title)), kTitle};
  if (hint.empty()) return block;
  block.elements += fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", block.height + 9, escape(hint));
  block.height += kRow;
  return block;
}

// Entries in rows as wide as the plot.
Block draw_legend(const Chart& chart) {
  Block block;
  double x = 0;
  for (const Line* line : legend_lines(chart)) {
    const double width = kMark + kLetter * letters(line->name) + kGap;
    if (block.height == 0 || x + width - kGap > kPlotWidth) {
      x = 0;
      block.height += kRow;
    }
    const double y = block.height - 6;
    block.elements += fmt::format(
        "<g class=\"c{}\"><path class=\"line{}\" d=\"M{:.1f} {:.1f}h16\"/></g><text x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}</text>\n",
        line->color % line_colors, stroke_class(line->stroke), x, y - 4, x + kMark, y, escape(line->name));
    x += width;
  }
  return block;
}

struct Drawing {
  std::string svg;
  int width = 0, height = 0;
};

Drawing draw_all(const Chart& chart) {
  if (!has_points(chart)) fail(ErrorKind::usage, "[picture] the chart '{}' has no finite value to draw", chart.title);
  const Plot plot = make_plot(chart);
  const Block title = draw_title(chart, plot.hint), legend = draw_legend(chart);
  const double top = kMargin + title.height, below = top + legend.height + 4;
  Drawing drawing;
  drawing.width = static_cast<int>(kPlotWidth + 2 * kMargin);
  drawing.height = static_cast<int>(std::ceil(below + kPlotHeight + kMargin / 2));
  drawing.svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\">\n<style>{2}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      drawing.width, drawing.height, kStyle);
  const auto place = [&](double y, const std::string& elements) {
    drawing.svg += fmt::format("<g transform=\"translate({},{})\">\n{}</g>\n", kMargin, y, elements);
  };
  place(kMargin, title.elements);
  place(top, legend.elements);
  place(below, plot.elements);
  drawing.svg += "</svg>\n";
  return drawing;
}

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
  fail(ErrorKind::data, "[picture] librsvg cannot draw a chart: {}", reason);
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

std::string chart_svg(const Chart& chart) { return draw_all(chart).svg; }

io::Image chart_image(const Chart& chart) {
  const Drawing drawing = draw_all(chart);
  const int width = static_cast<int>(kScale) * drawing.width, height = static_cast<int>(kScale) * drawing.height;
  const Surface surface = render(drawing.svg, width, height);
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

void write_chart_png(const std::string& path, const Chart& chart) { io::write_png(path, chart_image(chart)); }

}  // namespace convssm::report
