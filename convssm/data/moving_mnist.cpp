// Clips of moving digits. Everything random about a clip comes from the stream of its split and number, one stream below it
// for each digit, so that clips are the same in any order, on any thread and at any length.
#include "convssm/data/moving_mnist.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "convssm/base/error.h"
#include "convssm/base/option_reader.h"
#include "convssm/base/random.h"
#include "convssm/data/digits.h"

namespace convssm::data {
namespace {

void check(const MovingMnistOptions& o) {
  const auto require = [](bool good, const char* text, auto found) {
    if (!good) fail(ErrorKind::usage, "[moving-mnist] {}, got {}", text, found);
  };
  require(o.digits >= 1 && o.digits <= 100, "digits must be 1 to 100", o.digits);
  require(o.image_size >= 1 && o.image_size <= 4096, "image_size must be 1 to 4096", o.image_size);
  require(o.digit_size >= 1 && o.digit_size <= o.image_size, "digit_size must be 1 to image_size", o.digit_size);
  require(o.step >= 0 && o.step <= 1, "step must be 0 to 1", o.step);
  require(o.images.empty() ? o.test_images.empty() : true, "test_images needs images too", o.test_images);
}

std::shared_ptr<const DigitSource> make_digits(const MovingMnistOptions& o, uint64_t seed) {
  if (o.images.empty()) return drawn_digits(seed);
  return idx_digits({o.images, "", o.test_images, "", o.mix_splits});
}

// 0..255 as [-1,1].
std::array<float, 256> pixel_values() {
  std::array<float, 256> values;
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(2.0 * static_cast<double>(i) / 255 - 1);
  return values;
}

// The digit moved by a fraction of a pixel, one row and one column larger.
Digit shifted(const Digit& digit, double down, double right) {
  const int64_t size = digit.size + 1;
  Digit out{size, std::vector<uint8_t>(static_cast<size_t>(size * size))};
  const auto ink = [&](int64_t row, int64_t column) {
    const bool inside = row >= 0 && column >= 0 && row < digit.size && column < digit.size;
    return inside ? static_cast<double>(digit.pixels[static_cast<size_t>(row * digit.size + column)]) : 0.0;
  };
  for (int64_t row = 0; row < size; ++row) {
    for (int64_t column = 0; column < size; ++column) {
      const double above = (1 - right) * ink(row - 1, column) + right * ink(row - 1, column - 1);
      const double here = (1 - right) * ink(row, column) + right * ink(row, column - 1);
      out.pixels[static_cast<size_t>(row * size + column)] =
          static_cast<uint8_t>(std::lround((1 - down) * here + down * above));
    }
  }
  return out;
}

class MovingMnist : public Dataset {
 public:
  MovingMnist(const MovingMnistOptions& options, uint64_t seed)
      : options_(options), seed_(seed), digits_(make_digits(options, seed)), values_(pixel_values()) {}

  Clips clip(Split split, uint64_t index, int64_t frames) const override {
    if (frames < 1) fail(ErrorKind::usage, "[moving-mnist] frames must be positive, got {}", frames);
    const int64_t side = options_.image_size;
    Clips clip{.video = at::empty({1, frames, 1, side, side}, at::kFloat)};
    float* video = clip.video.data_ptr<float>();
    std::fill(video, video + clip.video.numel(), values_[0]);
    const Stream stream(seed_, fmt::format("moving-mnist: {}", name(split)), index % size(split));
    for (int64_t i = 0; i < options_.digits; ++i) {
      draw(video, options_.mix_splits ? Split::train : split, stream.split("digit", static_cast<uint64_t>(i)), frames);
    }
    return clip;
  }

  uint64_t size(Split split) const override { return options_.counts.of(split); }
  int64_t longest(Split) const override { return any_length; }
  FrameFormat format() const override { return {1, options_.image_size, options_.image_size}; }

  std::vector<std::string> summary() const override {
    return {
        options_.counts.text(),
        fmt::format("{} digit{} of {}x{} in frames of {}x{}, step {}", options_.digits, options_.digits == 1 ? "" : "s",
                    options_.digit_size, options_.digit_size, options_.image_size, options_.image_size, options_.step),
        options_.shapes == 0 ? digits_->summary()
                             : fmt::format("{}; the first {} of each split", digits_->summary(), options_.shapes),
        options_.mix_splits ? "all splits show the training digits (mix_splits)"
                            : "each split shows digits of its own"};
  }

 private:
  uint64_t shapes(Split split) const {
    const uint64_t all = digits_->count(split);
    return options_.shapes == 0 ? all : std::min(options_.shapes, all);
  }

  // One digit through all frames.
  void draw(float* video, Split split, Stream stream, int64_t frames) const {
    const Digit digit = resize(digits_->digit(split, stream.below(shapes(split))), options_.digit_size);
    const double x = stream.uniform(), y = stream.uniform(), angle = stream.uniform(0, 2 * std::numbers::pi);
    const int64_t side = options_.image_size, room = side - digit.size;
    for (const Offset& offset : bouncing_trajectory(x, y, angle, options_.step, room, frames)) {
      float* corner = video + offset.top * side + offset.left;
      Digit between;
      if (options_.subpixel) between = shifted(digit, offset.down, offset.right);
      const Digit& shown = options_.subpixel ? between : digit;
      const uint8_t* ink = shown.pixels.data();
      for (int64_t row = 0; row < std::min(shown.size, side - offset.top); ++row) {
        for (int64_t column = 0; column < std::min(shown.size, side - offset.left); ++column) {
          float& out = corner[row * side + column];
          out = std::max(out, values_[ink[row * shown.size + column]]);
        }
      }
      video += side * side;
    }
  }

  MovingMnistOptions options_;
  uint64_t seed_;
  std::shared_ptr<const DigitSource> digits_;
  std::array<float, 256> values_;
};

// One coordinate of a move: at an edge it stays, and turns back.
void move(double& position, double& velocity, double step) {
  position += step * velocity;
  if (position > 0 && position < 1) return;
  position = position <= 0 ? 0 : 1;
  velocity = -velocity;
}

}  // namespace

MovingMnistOptions MovingMnistOptions::from_json(const nlohmann::json& json) {
  MovingMnistOptions o;
  OptionReader read("moving-mnist", json);
  read("digits", o.digits);
  read("image_size", o.image_size);
  read("digit_size", o.digit_size);
  read("step", o.step);
  o.counts.read_options(read);
  read("images", o.images);
  read("test_images", o.test_images);
  read("shapes", o.shapes);
  read("mix_splits", o.mix_splits);
  read("subpixel", o.subpixel);
  read.finish();
  check(o);
  return o;
}

std::shared_ptr<const Dataset> make_moving_mnist(const nlohmann::json& options, uint64_t seed) {
  return std::make_shared<MovingMnist>(MovingMnistOptions::from_json(options), seed);
}

nlohmann::json finer_moving_mnist(const nlohmann::json& options, int64_t factor) {
  nlohmann::json finer = options;
  finer["step"] = options.value("step", MovingMnistOptions().step) / static_cast<double>(factor);
  return finer;
}

std::vector<Offset> bouncing_trajectory(double x, double y, double angle, double step, int64_t room, int64_t frames) {
  double vx = std::cos(angle), vy = std::sin(angle);
  std::vector<Offset> trajectory(static_cast<size_t>(frames));
  for (Offset& offset : trajectory) {
    move(x, vx, step);
    move(y, vy, step);
    const double top = static_cast<double>(room) * y, left = static_cast<double>(room) * x;
    offset = {static_cast<int64_t>(std::floor(top)), static_cast<int64_t>(std::floor(left)), top - std::floor(top),
              left - std::floor(left)};
  }
  return trajectory;
}

}  // namespace convssm::data
