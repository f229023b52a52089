// A hand is a set of habits (style, slant, width, thickness, ...) drawn once, and a small tremor of its own for every
// point of every stroke. The hands of each split come from a stream of their own.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "convssm/base/error.h"
#include "convssm/base/random.h"
#include "convssm/data/digit_shapes.h"
#include "convssm/data/digits.h"
#include "convssm/data/pen.h"

namespace convssm::data {
namespace {

constexpr uint64_t train_hands = 6000, valid_hands = 500, test_hands = 1000;
constexpr int64_t image_size = 28;
constexpr double box = 20;  // the digit with its ink fits into a box of this size

double bounded_normal(Stream& stream, double mean, double deviation) {
  return mean + deviation * stream.truncated_normal(2);
}

struct Hand {
  explicit Hand(Stream& stream)
      : slant(bounded_normal(stream, 0.12, 0.14)),
        turn(bounded_normal(stream, 0, 0.07)),
        width(stream.uniform(0.8, 1.15)),
        scale(stream.uniform(0.9, 1.0)),
        radius(stream.uniform(0.95, 1.75)),
        pressure(stream.uniform(0, 0.18)),
        pressure_phase(stream.uniform(0, 2 * std::numbers::pi)),
        tremor(stream.uniform(0.008, 0.026)) {
    for (double& value : bend) value = bounded_normal(stream, 0, 0.022);
    for (double& value : phase) value = stream.uniform(0, 2 * std::numbers::pi);
  }

  double slant, turn, width, scale;
  double radius, pressure, pressure_phase;  // of the pen, in pixels
  double tremor;
  double bend[4], phase[4];  // a slow warp of the whole sheet
};

// Where the point of the ideal shape lands on this hand's sheet.
Point place(const Hand& hand, const Point& p, Stream& stream) {
  const double tau = 2 * std::numbers::pi;
  double x = p.x - 0.5 + hand.tremor * stream.truncated_normal(2);
  double y = p.y - 0.5 + hand.tremor * stream.truncated_normal(2);
  const double u = x, v = y;
  x += hand.bend[0] * std::sin(tau * v + hand.phase[0]) + hand.bend[1] * std::sin(tau * 0.7 * u + hand.phase[1]);
  y += hand.bend[2] * std::sin(tau * u + hand.phase[2]) + hand.bend[3] * std::sin(tau * 0.7 * v + hand.phase[3]);
  x = hand.width * x - hand.slant * y;
  return {x * std::cos(hand.turn) - y * std::sin(hand.turn), x * std::sin(hand.turn) + y * std::cos(hand.turn),
          p.corner};
}

struct Box {
  double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;
  void add(const Point& p) {
    left = std::min(left, p.x), right = std::max(right, p.x);
    top = std::min(top, p.y), bottom = std::max(bottom, p.y);
  }
};

// Scales the strokes to the box and puts their middle into the middle of the image.
void fit(Shape& shape, const Hand& hand) {
  Box bounds;
  for (const Stroke& stroke : shape) {
    for (const Point& p : stroke) bounds.add(p);
  }
  const double room = box * hand.scale - 2 * hand.radius * (1 + hand.pressure);
  const double zoom = room / std::max(bounds.right - bounds.left, bounds.bottom - bounds.top);
  const double x0 = (bounds.left + bounds.right) / 2, y0 = (bounds.top + bounds.bottom) / 2;
  for (Stroke& stroke : shape) {
    for (Point& p : stroke) p = {(p.x - x0) * zoom + image_size / 2.0, (p.y - y0) * zoom + image_size / 2.0};
  }
}

Canvas ink(const Shape& shape, const Hand& hand) {
  Canvas canvas(image_size);
  double length = 0;  // of the line so far; pressure comes and goes along it
  const auto radius = [&] { return hand.radius * (1 + hand.pressure * std::sin(0.35 * length + hand.pressure_phase)); };
  for (const Stroke& stroke : shape) {
    for (size_t i = 0; i + 1 < stroke.size(); ++i) {
      const double before = radius();
      length += std::hypot(stroke[i + 1].x - stroke[i].x, stroke[i + 1].y - stroke[i].y);
      draw_line(canvas, stroke[i], stroke[i + 1], before, radius());
    }
  }
  return canvas;
}

// The shift in whole pixels that brings the centre of mass to the middle; the box keeps it inside the image.
std::vector<uint8_t> centred(const Canvas& canvas) {
  double mass = 0, x = 0, y = 0;
  for (int64_t i = 0; i < canvas.size * canvas.size; ++i) {
    const double value = canvas.pixels[static_cast<size_t>(i)];
    mass += value;
    x += value * (static_cast<double>(i % canvas.size) + 0.5);
    y += value * (static_cast<double>(i / canvas.size) + 0.5);
  }
  const int64_t most = (image_size - static_cast<int64_t>(box)) / 2;
  const auto shift = [&](double moment) {
    return std::clamp<int64_t>(std::lround(image_size / 2.0 - moment / mass), -most, most);
  };
  const int64_t right = shift(x), down = shift(y);
  std::vector<uint8_t> out(canvas.pixels.size());
  for (int64_t row = std::max<int64_t>(0, down); row < image_size + std::min<int64_t>(0, down); ++row) {
    for (int64_t column = std::max<int64_t>(0, right); column < image_size + std::min<int64_t>(0, right); ++column) {
      out[static_cast<size_t>(row * image_size + column)] =
          canvas.pixels[static_cast<size_t>((row - down) * image_size + column - right)];
    }
  }
  return out;
}

class DrawnDigits : public DigitSource {
 public:
  explicit DrawnDigits(uint64_t seed) : seed_(seed) {}

  uint64_t count(Split split) const override {
    return 10 * (split == Split::train ? train_hands : split == Split::valid ? valid_hands : test_hands);
  }

  Digit digit(Split split, uint64_t index) const override {
    if (index >= count(split))
      fail(ErrorKind::usage, "[drawn_digits] there are {} digits, got {}", count(split), index);
    Stream stream(seed_, fmt::format("drawn digits: {}", name(split)), index);
    const int label = static_cast<int>(index % 10);
    const auto& styles = digit_styles(label);
    const Hand hand(stream);
    Shape shape = styles[stream.below(styles.size())];
    for (Stroke& stroke : shape) {
      for (Point& p : stroke) p = place(hand, p, stream);
      stroke = smooth(stroke, 8);
    }
    fit(shape, hand);
    return {image_size, centred(ink(shape, hand)), label};
  }

  std::string summary() const override {
    return fmt::format("drawn digits: {} hands for training, {} others for validation, {} for testing", train_hands,
                       valid_hands, test_hands);
  }

 private:
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<DigitSource> drawn_digits(uint64_t seed) { return std::make_unique<DrawnDigits>(seed); }

}  // namespace convssm::data
