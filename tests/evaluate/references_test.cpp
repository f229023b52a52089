// Forecasts without a model: of what is known about them, and of fields whose motion is known.
#include "convssm/evaluate/references.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "convssm/data/moving_mnist.h"
#include "convssm/evaluate/advection.h"
#include "convssm/evaluate/climatology.h"
#include "tests/evaluate/field_clips.h"
#include "tests/support.h"

namespace convssm::evaluate {
namespace {

using testing::distance;
using testing::expect_error;

std::vector<std::string> names_of(const References& references) {
  std::vector<std::string> names;
  for (const NamedReference& one : references.all) names.push_back(one.info->name);
  return names;
}

// Smooth bumps carried by `move`, which says where the value of (x, y) at time t came from: [frames,H,W].
at::Tensor carried(int64_t frames, int64_t size, const std::function<void(double t, double& x, double& y)>& move) {
  at::Tensor out = at::empty({frames, size, size});
  auto a = out.accessor<float, 3>();
  for (int64_t t = 0; t < frames; ++t) {
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) {
        double x = static_cast<double>(j), y = static_cast<double>(i);
        move(static_cast<double>(t), x, y);
        a[t][i][j] =
            static_cast<float>(0.6 * std::sin(0.31 * x + 1) * std::sin(0.27 * y) + 0.3 * std::sin(0.13 * x - 0.21 * y));
      }
    }
  }
  return out;
}

// How much of the error of the copy of the last frame is left, away from the edge.
double error_left(const at::Tensor& video, int64_t seen, int64_t edge) {
  const at::Tensor context = video.slice(0, 0, seen).unsqueeze(0), truth = video.slice(0, seen);
  const at::Tensor found = carry_on(context.select(1, seen - 1), motion_of(context), truth.size(0))[0];
  const auto inside = [&](const at::Tensor& x) {
    return x.slice(1, edge, x.size(1) - edge).slice(2, edge, x.size(2) - edge);
  };
  const auto error = [&](const at::Tensor& x) { return inside(x - truth).square().mean().sqrt().item<double>(); };
  return error(found) / error(video.slice(0, seen - 1, seen).expand_as(truth));
}

TEST(Advection, CarriesATranslationOn) {
  const auto moves = [](double vx, double vy) {
    return carried(7, 64, [=](double t, double& x, double& y) { x -= vx * t, y -= vy * t; });
  };
  EXPECT_LT(error_left(moves(1, -2), 3, 16), 0.02);
  EXPECT_LT(error_left(moves(2.5, 1.25), 3, 16), 0.03);
  EXPECT_LT(error_left(moves(-0.4, 0.3), 2, 16), 0.03);
  const at::Tensor motion =
      motion_of(moves(2.5, 1.25).slice(0, 0, 3).unsqueeze(0))[0].slice(1, 12, 52).slice(2, 12, 52);
  EXPECT_LT(distance(motion, at::tensor({2.5f, 1.25f}).view({2, 1, 1}).expand_as(motion)), 0.1);
}

TEST(Advection, CarriesARotationOn) {
  const at::Tensor video = carried(7, 64, [](double t, double& x, double& y) {
    const double dx = x - 32, dy = y - 32, a = 0.05 * t;
    x = 32 + std::cos(a) * dx + std::sin(a) * dy, y = 32 - std::sin(a) * dx + std::cos(a) * dy;
  });
  EXPECT_LT(error_left(video, 3, 16), 0.1);
}

TEST(Advection, OfWhatDoesNotMoveIsTheCopy) {
  const at::Tensor still = carried(1, 32, [](double, double&, double&) {}).expand({3, 32, 32}).unsqueeze(0);
  EXPECT_LT(testing::max_abs(motion_of(still)), 1e-3);
  EXPECT_EQ(testing::max_abs(motion_of(at::full({1, 2, 32, 32}, -1.0f))), 0);
  EXPECT_LT(distance(carry_on(still.select(1, 2), at::zeros({1, 2, 32, 32}), 2)[0][1], still[0][0]), 1e-5);
}

TEST(Advection, DoesNotReadWhatWasNotMeasured) {
  const at::Tensor video = carried(3, 48, [](double t, double& x, double&) { x -= 2 * t; }).unsqueeze(0);
  at::Tensor valid = at::ones(video.sizes(), at::kBool);
  valid.slice(2, 10, 20).slice(3, 8, 40).fill_(false);
  const at::Tensor spoilt = video.masked_fill(valid.logical_not(), 0),
                   other = video.masked_fill(valid.logical_not(), 0.9);
  EXPECT_LT(distance(motion_of(spoilt, valid), motion_of(other, valid)), 1e-3);
  EXPECT_LT((motion_of(spoilt, valid)[0][0].slice(0, 12, 36).slice(1, 12, 36) - 2).abs().max().item<double>(), 0.25);
}

TEST(Advection, GivesEachChannelItsMotionAndOneFrameNone) {
  const at::Tensor right = carried(8, 48, [](double t, double& x, double&) { x -= 2 * t; });
  const at::Tensor down = carried(8, 48, [](double t, double&, double& y) { y -= 1.5 * t; });
  const at::Tensor video = at::stack({right, down}, 1).unsqueeze(0);  // [1,8,2,48,48]
  const References made = make_references({"advection"}, true, FieldClips());
  const at::Tensor found = made.all[0].reference->forecast({video.slice(1, 0, 4)}, 4);
  EXPECT_EQ(found.sizes(), (std::vector<int64_t>{1, 4, 2, 48, 48}));
  const auto inside = [](const at::Tensor& x) { return x.slice(3, 14, 34).slice(4, 14, 34); };
  EXPECT_LT(testing::max_abs(inside(found - video.slice(1, 4))), 0.06);
  const at::Tensor one = made.all[0].reference->forecast({video.slice(1, 0, 1)}, 2);
  EXPECT_LT(distance(one.select(1, 1), video.select(1, 0)), 1e-5);
}

TEST(References, ThoseOfPicturesAndOfFieldsStandThereByThemselves) {
  const FieldClips fields;
  EXPECT_EQ(names_of(make_references({}, true, fields)),
            (std::vector<std::string>{"copy last frame", "climatology", "advection"}));
  EXPECT_EQ(names_of(make_references({}, false, fields)), (std::vector<std::string>{"copy last frame", "blank frame"}));
  EXPECT_EQ(names_of(make_references({"blank frame"}, true, fields)), (std::vector<std::string>{"blank frame"}));
  expect_error([&] { make_references({"climatologi"}, true, fields); }, {"[reference]", "did you mean 'climatology'"});
  EXPECT_STREQ(make_references({}, true, fields).usual()->info->name.c_str(), "climatology");
  EXPECT_EQ(make_references({}, false, fields).usual(), nullptr);
}

TEST(References, WhatCannotBeHadIsLeftOutAndSaysWhy) {
  const References made = make_references({}, true, FieldClips(false));
  EXPECT_EQ(names_of(made), (std::vector<std::string>{"copy last frame", "advection"}));
  ASSERT_EQ(made.left_out.size(), 1u);
  EXPECT_NE(made.left_out[0].find("climatology: nobody knows when"), std::string::npos) << made.left_out[0];
  expect_error([] { make_references({"climatology"}, true, FieldClips(true, true, 8)); }, {"8 training frames"});
}

TEST(References, AProgramMayAddItsOwn) {
  class Zero : public Reference {
    at::Tensor forecast(const Past& past, int64_t frames) const override {
      return at::zeros_like(past.video.slice(1, 0, 1)).repeat({1, frames, 1, 1, 1});
    }
  };
  register_reference(
      {"zero of the test", "", false, false, false, [](const data::Dataset&) { return std::make_unique<Zero>(); }});
  EXPECT_EQ(names_of(make_references({"zero of the test"}, true, FieldClips())).size(), 1u);
  expect_error([] { register_reference({"advection", "", false, false, false, make_advection}); }, {"already"});
}

TEST(Climatology, IsTheMeanOfTheHour) {
  const FieldClips dataset;
  const Climatology climatology(dataset);
  EXPECT_EQ(climatology.text(), "mean of 80 training frames by hour of the day (4)");
  const at::Tensor found = climatology.at_times(at::tensor({FieldClips::kStep * 1001}, at::kDouble))[0];
  for (const auto& [y, x] : {std::pair{0, 0}, {5, 7}, {17, 19}}) {
    double sum[2] = {}, count[2] = {};
    for (int64_t n = 1; n < 80; n += 4) {
      for (int64_t c = 0; c < 2; ++c) {
        if (!FieldClips::measured(n, c, y, x)) continue;
        sum[c] += c == 0 ? FieldClips::temperature(n, y, x) : FieldClips::rain(n, y, x);
        count[c] += 1;
      }
    }
    EXPECT_NEAR(found[0][y][x].item<double>(), sum[0] / count[0], 1e-3);
    EXPECT_NEAR(found[1][y][x].item<double>(), sum[1] / count[1], 1e-4);
  }
}

// A pixel every `step` seconds from a day of 1970 on, whose value is `value(number of the frame)`; one training clip.
class Series : public data::Dataset {
 public:
  using Value = std::function<double(int64_t)>;
  using Known = std::function<bool(int64_t)>;
  Series(int64_t frames, double step, const std::string& calendar, Value value, Known known = {})
      : frames_(frames), value_(std::move(value)), known_(std::move(known)) {
    axes_.calendar = calendar, axes_.step = step;
  }
  data::Clips clip(data::Split split, uint64_t index, int64_t frames) const override {
    return part(split, index, 0, frames);
  }
  data::Clips part(data::Split, uint64_t, int64_t first, int64_t frames) const override {
    data::Clips clip{.video = at::empty({1, frames, 1, 1, 1})};
    clip.valid = at::ones(clip.video.sizes(), at::kBool);
    clip.timing.times = at::empty({1, frames}, at::kDouble);
    for (int64_t t = 0; t < frames; ++t) {
      clip.video[0][t].fill_(value_(first + t) / 100);
      if (known_ && !known_(first + t)) clip.valid[0][t].fill_(false);
      clip.timing.times[0][t] = axes_.step * static_cast<double>(first + t);
    }
    return clip;
  }
  uint64_t size(data::Split) const override { return 1; }
  int64_t longest(data::Split) const override { return frames_; }
  data::FrameFormat format() const override {
    data::FrameFormat format(1, 1, 1, -100, 100);
    format.channels[0].name = "t";
    return format;
  }
  const data::Axes* axes() const override { return &axes_; }
  std::vector<std::string> summary() const override { return {}; }

 private:
  int64_t frames_;
  Value value_;
  Known known_;
  data::Axes axes_;
};

constexpr double kDay = 86400;

// Two years to the day are two years, in every calendar; a day less is not.
TEST(Climatology, TakesTheMonthsOfTwoYearsOfTheCalendar) {
  const auto value = [](int64_t day) { return static_cast<double>(day % 7); };
  for (const auto& [calendar, days] : {std::pair{"standard", 730}, {"noleap", 730}, {"360_day", 720}}) {
    const auto text = [&, &calendar = calendar](int64_t frames) {
      return Climatology(Series(frames, kDay, calendar, value)).text();
    };
    EXPECT_NE(text(days).find("by month of the year (12)"), std::string::npos) << calendar << text(days);
    EXPECT_EQ(text(days - 1).find("month"), std::string::npos) << calendar << text(days - 1);
  }
}

TEST(Climatology, IsTheMeanOfTheMonth) {
  const Climatology usual(Series(730, kDay, "noleap", [](int64_t day) { return day % 365 < 31 ? 20.0 : 5.0; }));
  const auto at_day = [&](int64_t day) { return usual.at_times(at::tensor({day * kDay})).item<double>(); };
  EXPECT_NEAR(at_day(365 * 9 + 30), 20, 1e-4);  // 31 January
  EXPECT_NEAR(at_day(365 * 9 + 31), 5, 1e-4);
  EXPECT_NEAR(at_day(365 * 9 - 1), 5, 1e-4);  // 31 December
}

// At 6 o'clock the pixel is known once a year: it takes the mean of the month at all hours, not that of the year.
TEST(Climatology, FallsBackToTheMonth) {
  const auto known = [](int64_t t) { return t % 4 != 1 || t % (4 * 365) == 1; };
  const auto value = [](int64_t t) { return t / 4 % 365 < 31 ? 30.0 : -10.0; };
  const Climatology usual(Series(4 * 730, kDay / 4, "noleap", value, known));
  EXPECT_NEAR(usual.at_times(at::tensor({kDay / 4})).item<double>(), 30, 1e-4);
  EXPECT_NEAR(usual.at_times(at::tensor({40 * kDay + kDay / 4})).item<double>(), -10, 1e-4);
}

// Of a recording of which not all frames are read, the last one still counts for what it covers.
TEST(Climatology, OfSomeFramesCoversWhatAllDo) {
  const Series days(730, kDay, "noleap", [](int64_t) { return 1.0; });
  EXPECT_NE(Climatology(days, 3 * 32).text().find("month"), std::string::npos);
}

}  // namespace
}  // namespace convssm::evaluate
