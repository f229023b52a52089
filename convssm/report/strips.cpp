// The strips of several runs are cut apart and put below each other with one row of truth, after a check that all show
// the same clip at the same frames. librsvg smooths what it scales, so images are enlarged before.
#include "convssm/report/strips.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/spacing.h"
#include "convssm/report/html.h"
#include "convssm/report/raster.h"
#include "convssm/report/scores.h"

namespace convssm::report {
namespace {

constexpr int64_t kShown = 10;  // moments: as many as a page shows at a size that can be seen
constexpr int kScale = 2;       // pixels of a unit; whole, so that tiles stay crisp
constexpr int kMargin = 12, kBetween = 6, kFoot = 20;

struct Strip {
  std::string label;
  io::Image truth, forecast;     // the moments shown, side by side
  std::vector<int64_t> moments;  // frames ahead
  int64_t tile = 0;              // width
};

// `kShown` of the moments, the first ones closer together: there a forecast still knows where things are.
std::vector<int64_t> shown_columns(int64_t count) {
  std::vector<int64_t> columns;
  const int64_t shown = std::min(count, kShown);
  for (int64_t i = 0; i < shown; ++i) {
    const double part = shown == 1 ? 0 : static_cast<double>(i) / static_cast<double>(shown - 1);
    const int64_t next = columns.empty() ? 0 : columns.back() + 1;
    columns.push_back(std::max<int64_t>(next, std::llround(std::pow(part, 1.5) * static_cast<double>(count - 1))));
  }
  return columns;
}

io::Image cut(const io::Image& image, int64_t top, int64_t height, int64_t tile, const std::vector<int64_t>& columns) {
  const auto count = static_cast<int64_t>(columns.size()), channels = image.channels;
  io::Image out{count * (tile + strip_gap) - strip_gap, height, channels, {}};
  out.pixels.resize(static_cast<size_t>(out.width * height * channels));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t left = columns[static_cast<size_t>(i)] * (tile + strip_gap);
    const int64_t width = i + 1 < count ? tile + strip_gap : tile;  // the gap behind a tile comes with it
    for (int64_t y = 0; y < height; ++y) {
      const auto from = image.pixels.begin() + ((top + y) * image.width + left) * channels;
      std::copy_n(from, width * channels, out.pixels.begin() + (y * out.width + i * (tile + strip_gap)) * channels);
    }
  }
  return out;
}

// Each pixel as scale x scale: librsvg draws an image smoothly at any size but its own.
io::Image enlarged(const io::Image& image, int64_t scale) {
  io::Image out{scale * image.width, scale * image.height, image.channels, {}};
  out.pixels.reserve(static_cast<size_t>(out.width * out.height * out.channels));
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x) {
      const auto from = image.pixels.begin() + (y / scale * image.width + x / scale) * image.channels;
      out.pixels.insert(out.pixels.end(), from, from + image.channels);
    }
  }
  return out;
}

std::string strip_path(const Record& record, int64_t clip) {
  return fmt::format("{}/samples/evaluate-strip-{}.png", record.folder, clip);
}

Strip read_strip(const Record& record, int64_t clip) {
  const std::string path = strip_path(record, clip);
  const io::Image image = io::read_png(path);
  const auto all = horizons(first_setting(record.metrics));
  const int64_t frames = all.empty() ? 0 : *std::max_element(all.begin(), all.end());
  const auto moments = evenly_spaced(frames, strip_moments);
  const auto count = static_cast<int64_t>(moments.size());
  if (count == 0 || (image.width + strip_gap) % count != 0 || (image.height - strip_gap) % 2 != 0) {
    fail(ErrorKind::data,
         "[results] {} is {}x{} pixels, not two rows of {} frames as metrics.json beside it says; run convssm evaluate",
         path, image.width, image.height, count);
  }
  Strip strip;
  strip.label = record.label;
  strip.tile = (image.width + strip_gap) / count - strip_gap;
  const int64_t height = (image.height - strip_gap) / 2;
  const auto columns = shown_columns(count);
  for (const int64_t column : columns) strip.moments.push_back(moments[static_cast<size_t>(column)] + 1);
  strip.truth = cut(image, 0, height, strip.tile, columns);
  strip.forecast = cut(image, height + strip_gap, height, strip.tile, columns);
  return strip;
}

std::vector<Strip> read_strips(const std::vector<const Record*>& records, int64_t clip) {
  std::vector<Strip> strips;
  for (const Record* record : records) {
    if (!std::filesystem::is_regular_file(strip_path(*record, clip))) continue;
    strips.push_back(read_strip(*record, clip));
    if (strips.back().truth.pixels == strips[0].truth.pixels && strips.back().moments == strips[0].moments) continue;
    fail(ErrorKind::data, "[results] {} and {} were evaluated on different clips; choose rows by --only",
         strips[0].label, strips.back().label);
  }
  if (strips.empty()) {
    fail(ErrorKind::data,
         "[results] no run has samples/evaluate-strip-{}.png; run convssm evaluate, or choose another --clip", clip);
  }
  return strips;
}

struct Sheet {
  double left = 0;  // of the tiles
  double y = kMargin;
  std::string elements;

  void row(const std::string& label, const io::Image& image) {
    elements += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", left - 8,
                            y + static_cast<double>(image.height) / 2 + 4, escape(label));
    elements += fmt::format(
        "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
        "xlink:href=\"data:image/png;base64,{}\"/>\n",
        left, y, image.width, image.height, base64(io::encode_png(enlarged(image, kScale))));
    y += static_cast<double>(image.height) + kBetween;
  }

  void foot(const Strip& strip) {
    const auto text = [&](double x, const char* anchor, const std::string& words) {
      elements += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y + 10, anchor, words);
    };
    text(left - 8, "end", "frames ahead");
    for (size_t i = 0; i < strip.moments.size(); ++i) {
      const auto begin = static_cast<double>(i) * static_cast<double>(strip.tile + strip_gap);
      text(left + begin + static_cast<double>(strip.tile) / 2, "middle", fmt::format("{}", strip.moments[i]));
    }
    y += kFoot;
  }
};

}  // namespace

io::Image strips_image(const std::vector<const Record*>& records, int64_t clip) {
  const auto strips = read_strips(records, clip);
  double names = text_width("frames ahead");
  for (const Strip& strip : strips) names = std::max(names, text_width(strip.label));
  Sheet sheet;
  sheet.left = std::ceil(kMargin + names + 8);
  sheet.row("truth", strips[0].truth);
  for (const Strip& strip : strips) sheet.row(strip.label, strip.forecast);
  sheet.foot(strips[0]);
  const int width = static_cast<int>(sheet.left) + static_cast<int>(strips[0].truth.width) + kMargin;
  const int height = static_cast<int>(std::ceil(sheet.y));
  return rasterize(svg_document(width, height, sheet.elements), kScale * width, kScale * height);
}

}  // namespace convssm::report
