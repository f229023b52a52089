// Letters and scale are drawn as an SVG; the pixels of the maps are put into its picture, enlarged by a whole factor or, of
// large maps, every n-th, so that they stay what they are.
#include "convssm/report/field_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "convssm/base/error.h"
#include "convssm/report/html.h"
#include "convssm/report/numbers.h"
#include "convssm/report/raster.h"

namespace convssm::report {
namespace {

constexpr int64_t kPanel = 440;  // pixels that a map is about as wide as
constexpr double kUnit = 2, kMargin = 16, kHead = 46, kGap = 14, kBar = 14, kLabels = 70;
constexpr int kSteps = 64, kTicks = 5;

using Colour = std::array<double, 3>;

// Dark to bright with even steps of lightness, also in grey and to the colour-blind (the anchors of viridis).
Colour colour_at(double share) {
  static constexpr std::array<Colour, 9> anchors = {{{68, 1, 84},
                                                     {71, 44, 122},
                                                     {59, 81, 139},
                                                     {44, 113, 142},
                                                     {33, 144, 141},
                                                     {39, 173, 129},
                                                     {92, 200, 99},
                                                     {170, 220, 50},
                                                     {253, 231, 37}}};
  const double place = std::clamp(share, 0.0, 1.0) * (anchors.size() - 1);
  const auto low = std::min<size_t>(static_cast<size_t>(place), anchors.size() - 2);
  const double rest = place - static_cast<double>(low);
  Colour out{};
  for (size_t i = 0; i < 3; ++i) out[i] = (1 - rest) * anchors[low][i] + rest * anchors[low + 1][i];
  return out;
}

struct Layout {
  int64_t enlarged = 1, every = 1;  // one of them is 1
  int64_t height = 0, width = 0;    // of a map, in pixels of the picture
  double x(size_t map) const {
    return kMargin + static_cast<double>(map) * (static_cast<double>(width) / kUnit + kGap);
  }
};

Layout lay_out(const FieldMaps& maps) {
  Layout layout;
  layout.enlarged = std::max<int64_t>(1, kPanel / maps.width);
  layout.every = std::max<int64_t>(1, (maps.width + 2 * kPanel - 1) / (2 * kPanel));
  layout.height = (maps.height + layout.every - 1) / layout.every * layout.enlarged;
  layout.width = (maps.width + layout.every - 1) / layout.every * layout.enlarged;
  return layout;
}

double largest(const FieldMaps& maps) {
  double most = 0;
  for (const FieldMap& map : maps.maps) {
    for (const double value : map.values) most = std::isfinite(value) ? std::max(most, value) : most;
  }
  return most > 0 ? most : 1;
}

std::string scale_elements(double x, double height, double most) {
  std::string out;
  for (int i = 0; i < kSteps; ++i) {
    const Colour c = colour_at((i + 0.5) / kSteps);
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"{}\" height=\"{:.2f}\" fill=\"rgb({:.0f},{:.0f},{:.0f})\"/>\n", x,
        kHead + height * (1 - (i + 1.0) / kSteps), kBar, height / kSteps + 0.5, c[0], c[1], c[2]);
  }
  for (int i = 0; i < kTicks; ++i) {
    const double share = static_cast<double>(i) / (kTicks - 1);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + kBar + 6, kHead + height * (1 - share) + 4,
                       escape(short_number(share * most)));
  }
  return out;
}

void put_map(io::Image& image, const FieldMap& map, const FieldMaps& all, const Layout& layout, int64_t left,
             double most) {
  const auto top = static_cast<int64_t>(kHead * kUnit);
  for (int64_t y = 0; y < layout.height; ++y) {
    for (int64_t x = 0; x < layout.width; ++x) {
      const int64_t row = y / layout.enlarged * layout.every, column = x / layout.enlarged * layout.every;
      const double value = map.values[static_cast<size_t>(row * all.width + column)];
      const Colour c = std::isfinite(value) ? colour_at(value / most) : Colour{215, 219, 226};
      uint8_t* pixel = &image.pixels[static_cast<size_t>(((top + y) * image.width + left + x) * 3)];
      for (size_t i = 0; i < 3; ++i) pixel[i] = static_cast<uint8_t>(std::lround(c[i]));
    }
  }
}

}  // namespace

io::Image field_maps_image(const FieldMaps& maps) {
  const int64_t pixels = maps.height * maps.width;
  if (maps.maps.empty() || pixels <= 0) fail(ErrorKind::usage, "[field map] there is no map to draw");
  for (const FieldMap& map : maps.maps) {
    if (static_cast<int64_t>(map.values.size()) == pixels) continue;
    fail(ErrorKind::usage, "[field map] expected {} x {} values, got {}", maps.height, maps.width, map.values.size());
  }
  const Layout layout = lay_out(maps);
  const double most = largest(maps), height = static_cast<double>(layout.height) / kUnit,
               bar = layout.x(maps.maps.size());
  std::string elements =
      fmt::format("<text class=\"title\" x=\"{}\" y=\"18\">{}</text>\n", kMargin, escape(maps.title));
  for (size_t i = 0; i < maps.maps.size(); ++i) {
    elements +=
        fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", layout.x(i), kHead - 8, escape(maps.maps[i].name));
  }
  elements += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", bar, kHead - 8, escape(maps.units));
  elements += scale_elements(bar, height, most);
  const int wide = static_cast<int>(std::ceil(bar + kBar + kLabels)),
            tall = static_cast<int>(std::ceil(kHead + height + kMargin));
  io::Image image =
      rasterize(svg_document(wide, tall, elements), static_cast<int>(kUnit) * wide, static_cast<int>(kUnit) * tall);
  for (size_t i = 0; i < maps.maps.size(); ++i) {
    put_map(image, maps.maps[i], maps, layout, std::lround(kUnit * layout.x(i)), most);
  }
  return image;
}

void write_field_maps_png(const std::string& path, const FieldMaps& maps) {
  io::write_png(path, field_maps_image(maps));
}

}  // namespace convssm::report
