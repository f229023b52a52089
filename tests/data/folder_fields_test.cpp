// Grid files as a dataset: ranges, channels, splits, and what an inspection tells of them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "convssm/data/convert.h"
#include "convssm/data/folder.h"
#include "convssm/data/inspect.h"
#include "field_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;
using testing::hours_from;
using testing::t2m_at;
using testing::write_fields;

class FolderOfFields : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::shared_ptr<const Dataset> dataset(nlohmann::json options) const {
    options["path"] = folder_.path();
    return make_folder(options, 1);
  }

  void convert_variable(const std::string& from, const std::string& variable, const std::string& to) const {
    RecordingOptions options;
    options.fields.variables = {variable};
    convert_clip(*open_recording(path(from), options), 0, path(to), {});
  }

  ScratchFolder folder_;
};

// Of a normal distribution some values are always beyond four deviations.
TEST_F(FolderOfFields, MeanAndDeviationAreNoLimits) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 10)});
  nlohmann::json options{
      {"variables", {"t2m"}}, {"mean", 270}, {"std", 0.5}, {"test_fraction", 0}, {"valid_fraction", 0}};
  const auto data = dataset(options);
  data->check();
  const Clips clip = data->part(Split::train, 0, 0, 10);
  EXPECT_NEAR(clip.video[0][9][0][0][0].item<float>(), (t2m_at(9, 0, 0) - 270) / 2, 1e-3);
  EXPECT_TRUE(FrameFormat::from_json(data->format().to_json()).open);
  options["clamp"] = true;
  EXPECT_EQ(dataset(options)->part(Split::train, 0, 0, 10).video.max().item<float>(), 1);
  options["clamp"] = false, options["std"] = 0.01;
  expect_error([&] { dataset(options)->part(Split::train, 0, 0, 10); }, {"row 0, column 1", "outside of low"});
  // Of the logarithm: low + log_offset is then above 0 whatever they are.
  options["mean"] = 5.6, options["std"] = 0.4, options["log_offset"] = 0.1;
  const Clips logs = dataset(options)->part(Split::train, 0, 0, 10);
  EXPECT_NEAR(logs.video[0][0][0][0][0].item<float>(), (std::log(t2m_at(0, 0, 0) + 0.1) - 5.6) / 1.6, 1e-4);
}

TEST_F(FolderOfFields, NamesThatAreWrongNameTheNearest) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 10)});
  nlohmann::json options{{"variables", {"t2m", "u@500"}}, {"low", 200}, {"high", 400}, {"diagnostic", {"u@50"}}};
  expect_error([&] { dataset(options); }, {"diagnostic: there is no channel 'u@50'; did you mean 'u@500'?"});
  options["variables"] = {"t2m", "t2m"};
  expect_error([&] { dataset(options); }, {"variables names 't2m' twice"});
}

TEST_F(FolderOfFields, TrainingAndTestAreTheSameQuantities) {
  std::filesystem::create_directories(path("train")), std::filesystem::create_directories(path("test"));
  write_fields(path("train/a.nc"), {.hours = hours_from(0, 40)});
  write_fields(path("test/b.zarr"), {.hours = hours_from(100, 10)});
  nlohmann::json options{{"variables", {"t2m"}}, {"low", 200}, {"high", 400}, {"split_gap", 3}};
  const auto data = dataset(options);
  EXPECT_EQ(data->length(Split::train, 0), 33) << "40 without the last tenth and the gap before it";
  EXPECT_EQ(data->length(Split::valid, 0), 4);
  EXPECT_EQ(data->length(Split::test, 0), 10);
  write_fields(path("test/b.zarr"), {.hours = hours_from(100, 10), .latitude = 10});
  const auto notes = dataset(options)->summary();
  EXPECT_TRUE(std::ranges::any_of(
      notes, [](const std::string& note) { return note.find("are of different places") != std::string::npos; }));
  std::filesystem::remove_all(path("test/b.zarr"));
  convert_variable("train/a.nc", "u@500", "test/b.nc");
  options.erase("variables");
  std::filesystem::remove(path("train/a.nc"));
  write_fields(path("other.nc"), {.hours = hours_from(0, 40)});
  convert_variable("other.nc", "t2m", "train/a.nc");
  std::filesystem::remove(path("other.nc"));
  expect_error([&] { dataset(options); }, {"same channels", "t2m [K]", "u@500 [m s-1]"});
}

TEST_F(FolderOfFields, AGapIsForSplitsByTime) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 10)});
  write_fields(path("b.nc"), {.hours = hours_from(0, 10)});
  nlohmann::json options{{"variables", {"t2m"}}, {"low", 200}, {"high", 400}, {"split_gap", 3}};
  expect_error([&] { dataset(options); }, {"split_gap is for one recording", "by their names"});
}

TEST_F(FolderOfFields, InspectionTellsProgramsWhatItFound) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 10), .missing = {0, 3}});
  write_fields(path("b.nc"), {.hours = hours_from(15, 5)});
  const Inspection found = inspect({{"path", folder_.path()}, {"variables", {"t2m"}}});
  const nlohmann::json json = inspection_json(found), &field = json["fields"][0], &times = json["times"];
  EXPECT_EQ(field["name"], "t2m");
  EXPECT_EQ(field["units"], "K");
  EXPECT_NEAR(field["low"].get<double>(), 270.01, 1e-3) << "the pixel at 270 is missing";
  EXPECT_NEAR(field["missing"].get<double>(), 2.0 / (15 * 24), 1e-9);
  EXPECT_GT(field["deviation"].get<double>(), 1);
  EXPECT_EQ(times["step_seconds"], 3600);
  EXPECT_EQ(times["gaps"], 1);
  EXPECT_EQ(times["pieces"][1]["first"], "2019-03-01 15:00:00");
  EXPECT_EQ(times["pieces"][1]["frames"], 5);
  EXPECT_EQ(frame_strip(found, 4).pixels[0], 128) << "missing pixels are grey";
}

}  // namespace
}  // namespace convssm::data
