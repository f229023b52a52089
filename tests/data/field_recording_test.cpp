// Recordings in grid files: what they say of themselves, several files as one, gaps, missing pixels, what is known in advance.
#include "convssm/data/field_recording.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "convssm/base/error.h"
#include "convssm/data/folder.h"
#include "convssm/data/pixels.h"
#include "field_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;
using testing::FieldsToWrite;
using testing::hours_from;
using testing::t2m_at;
using testing::write_fields;

class FieldRecordings : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::unique_ptr<Recording> open(const std::string& name, RecordingOptions options = {}) const {
    return open_recording(name.empty() ? folder_.path() : path(name), options);
  }
  std::shared_ptr<const Dataset> dataset(nlohmann::json options) const {
    options["path"] = folder_.path();
    return make_folder(options, 1);
  }

  ScratchFolder folder_;
};

RecordingOptions with_variables(std::vector<std::string> names) {
  RecordingOptions options;
  options.fields.variables = std::move(names);
  return options;
}

TEST_F(FieldRecordings, SayWhatTheyAre) {
  for (const char* name : {"a.nc", "a.zarr"}) {
    write_fields(path(name), {.hours = hours_from(0, 30)});
    const auto recording = open(name, with_variables({"t2m", "u@500"}));
    const RecordingInfo& info = recording->info();
    EXPECT_EQ(info.kind, "field");
    EXPECT_EQ(info.frames, 30);
    ASSERT_EQ(info.named_channels.size(), 2u);
    EXPECT_EQ(info.named_channels[0].name, "t2m");
    EXPECT_EQ(info.named_channels[0].units, "K");
    EXPECT_EQ(info.named_channels[1].name, "u@500");
    EXPECT_TRUE(info.axes.has_latitudes());
    EXPECT_EQ(info.axes.columns.units, "degrees_east");
    EXPECT_EQ(info.axes.rows.values[1], 57.75);
    EXPECT_EQ(info.axes.step, 3600);
    EXPECT_TRUE(info.may_miss) << "the file has a _FillValue";
    for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 30}, {7, 3}, {29, 1}}) {
      const io::Array frames = recording->read(0, first, count);
      const float* value = frames.values<float>().data();
      for (int64_t t = first; t < first + count; ++t) {
        for (int64_t channel = 0; channel < 2; ++channel) {
          for (int64_t r = 0; r < 4; ++r) {
            for (int64_t c = 0; c < 6; ++c, ++value) {
              const double hour = static_cast<double>(t);
              ASSERT_NEAR(*value, channel == 0 ? t2m_at(hour, r, c) : hour - 0.5 + static_cast<double>(r), 1e-4);
            }
          }
        }
      }
    }
    EXPECT_EQ(recording->read_times(0, 29, 2),
              (std::vector<double>{1551398400.0 + 29 * 3600, 1551398400.0 + 30 * 3600}));
  }
}

TEST_F(FieldRecordings, TakeAllFieldsAndLevelsUnasked) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 3)});
  std::vector<std::string> names;
  for (const Channel& channel : open("a.nc")->info().named_channels) names.push_back(channel.name);
  EXPECT_EQ(names, (std::vector<std::string>{"t2m", "u@850", "u@500"}));
}

TEST_F(FieldRecordings, FilesInTheOrderOfTheirTimesAreOne) {
  write_fields(path("z.nc"), {.hours = hours_from(0, 10)});
  write_fields(path("a.nc"), {.hours = hours_from(10, 10)});
  write_fields(path("b.zarr"), {.hours = hours_from(24, 6)});  // after a gap
  const auto recording = open("", with_variables({"t2m"}));
  EXPECT_TRUE(recording->info().in_time_order);
  EXPECT_EQ(recording->info().lengths, (std::vector<int64_t>{20, 6}));
  const io::Array across = recording->read(0, 8, 4);  // of both files
  for (int64_t t = 0; t < 4; ++t)
    EXPECT_NEAR(across.values<float>()[static_cast<size_t>(24 * t)], t2m_at(8.0 + static_cast<double>(t), 0, 0), 1e-4);
  EXPECT_NEAR(recording->read(1, 0, 1).values<float>()[0], t2m_at(24, 0, 0), 1e-4);
  EXPECT_NE(recording->info().notes.back().find("1 gap in time"), std::string::npos) << recording->info().notes.back();
  const auto data =
      dataset({{"variables", {"t2m"}}, {"low", 200}, {"high", 400}, {"test_fraction", 0}, {"valid_fraction", 0}});
  EXPECT_EQ(data->size(Split::train), 2u);
  EXPECT_EQ(data->length(Split::train, 0), 20);
}

TEST_F(FieldRecordings, FilesThatDoNotFitAreErrors) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 10)});
  write_fields(path("b.nc"), {.hours = hours_from(9, 10)});
  expect_error([&] { open(""); },
               {"overlap", "a.nc' goes on to 2019-03-01 09:00:00", "b.nc' begins at 2019-03-01 09:00:00"});
  write_fields(path("b.nc"), {.hours = hours_from(10, 10), .height = 5});
  expect_error([&] { open(""); }, {"one grid", "4 x 6", "5 x 6"});
  write_fields(path("b.nc"), {.hours = hours_from(10, 10), .latitude = 50});
  expect_error([&] { open(""); }, {"one grid"});
  write_fields(path("b.nc"), {.hours = {12, 11, 13}});
  expect_error([&] { open("b.nc"); }, {"b.nc", "must grow", "frame 1"});
  expect_error([&] { open("a.nc", with_variables({"t2n"})); }, {"no variable 't2n'", "did you mean 't2m'?"});
  expect_error([&] { open("a.nc", with_variables({"u@700"})); }, {"no level 700", "850, 500"});
  expect_error([&] { open("a.nc", with_variables({"t2m@850"})); }, {"t2m has no levels"});
  expect_error([&] { open("a.nc", with_variables({"lat"})); }, {"has no rows and columns"});
}

TEST_F(FieldRecordings, SimulationsOfOneTimeAreClipsOfTheirOwn) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 10)});
  write_fields(path("b.nc"), {.hours = hours_from(0, 12)});
  const auto recording = open("", with_variables({"t2m"}));
  EXPECT_FALSE(recording->info().in_time_order);
  EXPECT_EQ(recording->info().lengths, (std::vector<int64_t>{10, 12}));
}

TEST_F(FieldRecordings, MissingPixelsAreNotMeasured) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 10), .missing = {0, 3}});
  nlohmann::json options{
      {"variables", {"t2m"}}, {"low", 200}, {"high", 400}, {"test_fraction", 0}, {"valid_fraction", 0}};
  const Clips clip = dataset(options)->clip(Split::train, 0, 10);
  ASSERT_TRUE(clip.valid.defined());
  EXPECT_EQ(clip.valid.logical_not().sum().item<int64_t>(), 2);
  EXPECT_FALSE(clip.valid[0][3][0][0][0].item<bool>());
  EXPECT_EQ(clip.video[0][3][0][0][0].item<float>(), kFiller);
  EXPECT_NEAR(clip.video[0][4][0][0][0].item<float>(), (t2m_at(4, 0, 0) - 300) / 100, 1e-5);
  options["missing"] = "fail";
  expect_error([&] { dataset(options)->clip(Split::train, 0, 10); }, {"a.nc", "frame 0", "row 0, column 0", "nan"});
}

TEST_F(FieldRecordings, AWindowOfNothingMeasuredIsAnErrorOrLeftOut) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 10), .blank = {4, 5, 6}});
  write_fields(path("b.nc"), {.hours = hours_from(20, 10)});
  nlohmann::json options{{"variables", {"t2m"}}, {"low", 200},         {"high", 400},
                         {"missing", "mask"},    {"test_fraction", 0}, {"valid_fraction", 0}};
  const auto all = [](const Dataset& data) {
    for (uint64_t i = 0; i < 40; ++i) EXPECT_TRUE(data.clip(Split::train, i, 2).valid.any().item<bool>());
  };
  const auto data = dataset(options);
  expect_error([&] { all(*data); }, {"clip 0", "no pixel of a window of 2 frames was measured", "data.on_error=skip"});
  EXPECT_FALSE(data->part(Split::train, 0, 4, 3).valid.any().item<bool>()) << "of a walk, or to be scored";
  options["on_error"] = "skip";
  all(*dataset(options));
}

TEST_F(FieldRecordings, SplitsAreCutInTimeWithAGap) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 60)});
  write_fields(path("b.nc"), {.hours = hours_from(70, 40)});
  const auto data = dataset({{"variables", {"t2m"}},
                             {"low", 200},
                             {"high", 400},
                             {"test_fraction", 0.1},
                             {"valid_fraction", 0.4},
                             {"split_gap", 5}});
  // 100 frames: the last 10 are for testing, 5 for nothing, 40 before them for validation, across the gap, 5 for nothing.
  const auto first_hour = [&](Split split, uint64_t clip) {
    return (data->part(split, clip, 0, 2).timing.times[0][0].item<double>() - 1551398400.0) / 3600;
  };
  EXPECT_EQ(data->length(Split::test, 0), 10);
  EXPECT_EQ(first_hour(Split::test, 0), 100);
  ASSERT_EQ(data->size(Split::valid), 2u);
  EXPECT_EQ(first_hour(Split::valid, 0), 45);
  EXPECT_EQ(data->length(Split::valid, 0), 15);
  EXPECT_EQ(data->length(Split::valid, 1), 25);
  ASSERT_EQ(data->size(Split::train), 1u);
  EXPECT_EQ(data->length(Split::train, 0), 40);
}

TEST_F(FieldRecordings, WhatIsKnownInAdvanceComesAsMaps) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 30)});
  const auto data = dataset({{"variables", {"t2m"}},
                             {"forcings", {"hour", "season", "sun", "latitude", "longitude", "orography"}},
                             {"low", 200},
                             {"high", 400},
                             {"test_fraction", 0},
                             {"valid_fraction", 0}});
  EXPECT_EQ(data->actions().maps, 9);
  const at::Tensor maps = data->part(Split::train, 0, 6, 13).actions[0];  // hours 6 to 18 of 1 March
  ASSERT_EQ(maps.sizes(), (at::IntArrayRef{13, 9, 4, 6}));
  const auto at = [&](int64_t t, int64_t map, int64_t r, int64_t c) { return maps[t][map][r][c].item<double>(); };
  EXPECT_NEAR(at(0, 0, 1, 1), 1, 1e-6);   // sine of 6 o'clock
  EXPECT_NEAR(at(6, 1, 0, 5), -1, 1e-6);  // cosine of noon
  EXPECT_NEAR(at(0, 2, 0, 0), std::sin(2 * M_PI * 59.25 / 365), 1e-6);
  // NOAA's solar calculator: 58 N 10 W, 2019-03-01 12:00 UTC, zenith 66.9 degrees.
  EXPECT_NEAR(std::acos(at(6, 4, 0, 0)) * 180 / M_PI, 66.9, 0.5);
  EXPECT_LT(at(0, 4, 0, 0), 0.01);  // before the sun has risen
  EXPECT_NEAR(at(3, 5, 1, 0), 57.75 / 90, 1e-6);
  EXPECT_NEAR(at(3, 6, 1, 0), std::sin(-10 * M_PI / 180), 1e-6);
  EXPECT_NEAR(at(3, 8, 0, 0), -1, 1e-6);
  EXPECT_NEAR(at(3, 8, 3, 5), 1, 1e-6);
  EXPECT_LE(maps.abs().max().item<double>(), 1);
  expect_error(
      [&] {
        dataset({{"forcings", {"hours"}}, {"variables", {"t2m"}}});
      },
      {"unknown forcing 'hours'", "did you mean 'hour'?"});
}

TEST_F(FieldRecordings, EveryKthFrameKeepsItsTimeAndMaps) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 30)});
  const auto data = dataset({{"variables", {"t2m"}},
                             {"forcings", {"hour"}},
                             {"stride", 3},
                             {"low", 200},
                             {"high", 400},
                             {"test_fraction", 0},
                             {"valid_fraction", 0}});
  EXPECT_EQ(data->axes()->step, 3 * 3600);
  const Clips clip = data->part(Split::train, 0, 2, 3);
  EXPECT_EQ((clip.timing.times[0][1].item<double>() - 1551398400.0) / 3600, 9);
  EXPECT_NEAR(clip.actions[0][1][0][0][0].item<double>(), std::sin(2 * M_PI * 9 / 24), 1e-6);
}

TEST_F(FieldRecordings, UnevenTimesAreIntervalsWhereTheyAreWanted) {
  write_fields(path("a.nc"), {.hours = {0, 1, 2, 3.25, 4, 5, 6, 7}});
  nlohmann::json options{
      {"variables", {"t2m"}}, {"low", 200}, {"high", 400}, {"test_fraction", 0}, {"valid_fraction", 0}};
  EXPECT_FALSE(dataset(options)->part(Split::train, 0, 2, 3).timing.dt.defined());
  options["dt"] = "use";
  EXPECT_TRUE(
      dataset(options)->part(Split::train, 0, 2, 3).timing.dt.allclose(at::tensor({1.0f, 1.25f, 0.75f}).unsqueeze(0)));
}

}  // namespace
}  // namespace convssm::data
