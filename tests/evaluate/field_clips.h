// Recordings of made-up fields with times, latitudes and pixels that were not measured, for the tests of their scores. Values
// follow from a formula that tools/golden/make_skill.py has too.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "convssm/data/dataset.h"

namespace convssm::evaluate {

// Two variables, a temperature and a rain on a logarithmic scale, every 6 hours.
class FieldClips : public data::Dataset {
 public:
  static constexpr int64_t kHeight = 18, kWidth = 20, kTrain = 80, kTest = 9, kTests = 3;
  static constexpr double kStep = 6 * 3600;

  explicit FieldClips(bool with_times = true, bool with_gaps = true, int64_t train = kTrain)
      : gaps_(with_gaps), train_(train) {
    axes_.rows = {"latitude", "degrees_north", {}};
    for (int64_t y = 0; y < kHeight; ++y) axes_.rows.values.push_back(70 - 4 * static_cast<double>(y));
    if (with_times) axes_.calendar = "standard", axes_.step = kStep;
  }

  // Hours after the beginning of the clip's frames; clips of the test are later than those of the training.
  static int64_t frame_number(data::Split split, uint64_t index, int64_t t) {
    return split == data::Split::train ? t : 1000 + 37 * static_cast<int64_t>(index) + t;
  }
  static double temperature(int64_t n, int64_t y, int64_t x) {
    return 280 - 0.5 * y + 4 * std::sin(M_PI / 2 * static_cast<double>(n % 4)) + 0.1 * x +
           3 * std::sin(0.9 * static_cast<double>(n) + 0.4 * x + 0.2 * y);
  }
  static double rain(int64_t n, int64_t y, int64_t x) {
    return std::max(0.0, 6 * std::sin(0.35 * static_cast<double>(x - n)) * std::cos(0.3 * static_cast<double>(y)) - 1);
  }
  static bool measured(int64_t n, int64_t c, int64_t y, int64_t x) { return (7 * n + 5 * c + 3 * y + x * x) % 11 != 0; }

  data::Clips clip(data::Split split, uint64_t index, int64_t frames) const override {
    return part(split, index, 0, frames);
  }
  data::Clips part(data::Split split, uint64_t index, int64_t first, int64_t frames) const override {
    at::Tensor values = at::empty({1, frames, 2, kHeight, kWidth}, at::kDouble);
    at::Tensor valid = at::ones({1, frames, 2, kHeight, kWidth}, at::kBool);
    at::Tensor times = at::empty({1, frames}, at::kDouble);
    double* value = values.data_ptr<double>();
    bool* known = valid.data_ptr<bool>();
    for (int64_t t = 0; t < frames; ++t) {
      const int64_t n = frame_number(split, index, first + t);
      times.data_ptr<double>()[t] = kStep * static_cast<double>(n);
      for (int64_t c = 0; c < 2; ++c) {
        for (int64_t y = 0; y < kHeight; ++y) {
          for (int64_t x = 0; x < kWidth; ++x) {
            *value++ = c == 0 ? temperature(n, y, x) : rain(n, y, x);
            *known++ = !gaps_ || measured(n, c, y, x);
          }
        }
      }
    }
    data::Clips clip{.video = data::frames_of_values(values, format())};
    if (gaps_) clip.valid = valid, clip.video = clip.video.masked_fill(valid.logical_not(), 0);
    if (axes_.step > 0) clip.timing.times = times;
    return clip;
  }
  uint64_t size(data::Split split) const override { return split == data::Split::train ? 1 : kTests; }
  int64_t longest(data::Split split) const override { return split == data::Split::train ? train_ : kTest; }
  data::FrameFormat format() const override {
    data::FrameFormat format(2, kHeight, kWidth);
    format.channels[0] = {.name = "t2m", .low = 250, .high = 310, .units = "K"};
    format.channels[1] = {.name = "rain", .low = 0, .high = 10, .units = "mm", .log_offset = 0.1};
    return format;
  }
  const data::Axes* axes() const override { return &axes_; }
  std::vector<std::string> summary() const override { return {}; }

 private:
  bool gaps_;
  int64_t train_;
  data::Axes axes_;
};

}  // namespace convssm::evaluate
