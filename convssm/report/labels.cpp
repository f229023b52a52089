// Drawn as SVG by librsvg, which brings fonts and UTF-8; only one channel is kept, to stand above grey frames.
#include "convssm/report/labels.h"

#include <fmt/format.h>

#include "convssm/report/html.h"
#include "convssm/report/raster.h"

namespace convssm::report {
namespace {

constexpr int kHeight = 36;

std::string text(double x, double y, const char* color, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n", x, y, color, escape(words));
}

io::Image to_grey(const io::Image& rgb) {
  io::Image grey{rgb.width, rgb.height, 1, {}};
  for (size_t i = 1; i < rgb.pixels.size(); i += 3) grey.pixels.push_back(rgb.pixels[i]);
  return grey;
}

}  // namespace

io::Image label_picture(const std::vector<std::string>& columns, const std::string& line, int64_t width) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<style>text {{ font-family: \"DejaVu Sans\", sans-serif; font-size: 11px; text-anchor: middle; }}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#202020\"/>\n",
      width, kHeight);
  const double part = static_cast<double>(width) / static_cast<double>(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    svg += text((static_cast<double>(i) + 0.5) * part, 14, "#ffffff", columns[i]);
  }
  svg += text(static_cast<double>(width) / 2, 29, "#a0a0a0", line) + "</svg>\n";
  return to_grey(rasterize(svg, static_cast<int>(width), kHeight));
}

}  // namespace convssm::report
