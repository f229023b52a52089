// Fields that are known in advance: at the time of each frame, or the same at all times; what is not known is an error.
#include "convssm/data/forcings.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "convssm/data/recording.h"
#include "convssm/io/grid_writer.h"
#include "field_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;
using testing::hours_from;
using testing::write_fields;

RecordingOptions knowing(std::vector<std::string> forcings,
                         std::map<std::string, std::pair<double, double>> ranges = {}) {
  RecordingOptions options;
  options.fields.variables = {"t2m"};
  options.fields.forcing_ranges = std::move(ranges);
  options.forcings = std::move(forcings);
  return options;
}

// Map `map` of frame `t` at [r,c].
double at(const at::Tensor& maps, int64_t t, int64_t map, int64_t r, int64_t c) {
  return maps[t][map][r][c].item<double>();
}

// u@850 of hour h and row r (field_files.h), from -10 to 40.
double wind(double hour, int64_t row) { return (hour - 0.85 + static_cast<double>(row) + 10) / 50 * 2 - 1; }

TEST(Forcings, FieldsWithTimesGiveTheMapOfEachFramesOwnTime) {
  const ScratchFolder folder;
  write_fields(folder.path("b.nc"), {.hours = hours_from(0, 10)});
  write_fields(folder.path("a.zarr"), {.hours = hours_from(10, 5)});
  write_fields(folder.path("c.nc"), {.hours = hours_from(20, 6)});  // behind a gap
  RecordingOptions options = knowing({"hour", "u@850", "orography"}, {{"u@850", {-10, 40}}});
  const auto recording = open_recording(folder.path(), options);
  EXPECT_EQ(recording->info().action_maps, 4);
  const at::Tensor across = recording->read_actions(0, 8, 4);
  ASSERT_EQ(across.sizes(), (at::IntArrayRef{4, 4, 4, 6}));
  for (int64_t t = 0; t < 4; ++t) {
    EXPECT_NEAR(at(across, t, 2, 1, 3), wind(8.0 + static_cast<double>(t), 1), 1e-5);
    EXPECT_NEAR(at(across, t, 3, 3, 5), 1, 1e-6);
  }
  EXPECT_NEAR(at(recording->read_actions(1, 2, 1), 0, 2, 3, 0), wind(22, 3), 1e-5);
  options.view.stride = 3;
  EXPECT_NEAR(at(open_recording(folder.path(), options)->read_actions(0, 1, 3), 2, 2, 0, 0), wind(9, 0), 1e-5);
  expect_error(
      [&] { recording->read_actions(1, 4, 4); },
      {"u@850 is not known of 2019-03-02 02:00:00", "from 2019-03-01 00:00:00 until 2019-03-02 01:00:00", "--frames"});
  EXPECT_NO_THROW(open_recording(folder.path(), knowing({"hour", "orography"}))->read_actions(1, 4, 40));
}

TEST(Forcings, FieldsThatDoNotFitAreErrors) {
  const ScratchFolder folder;
  write_fields(folder.path("a.nc"), {.hours = hours_from(0, 10)});
  const auto open = [&](const RecordingOptions& options) { open_recording(folder.path("a.nc"), options); };
  expect_error([&] { open(knowing({"u@850"})); },
               {"u@850 changes with time", "data.forcing_ranges: {u@850: [low, high]}", "-0.85 to 2.15"});
  expect_error([&] { open(knowing({"u"})); }, {"u has 2 levels", "such as u@850"});
  expect_error([&] { open(knowing({"orography@2"})); }, {"orography has no levels"});
  expect_error([&] { open(knowing({"orografy"})); }, {"unknown forcing 'orografy'", "did you mean 'orography'?"});
  expect_error(
      [&] {
        open(knowing({"hour"}, {{"sst", {0, 1}}}));
      },
      {"forcing_ranges", "'sst'", "data.forcings (hour)"});
}

TEST(Forcings, SimulationsHaveTheirOwn) {
  const ScratchFolder folder;
  write_fields(folder.path("a.nc"), {.hours = hours_from(0, 10)});
  write_fields(folder.path("b.nc"), {.hours = hours_from(0, 12)});
  const auto recording = open_recording(folder.path(), knowing({"u@850"}, {{"u@850", {-10, 40}}}));
  EXPECT_EQ(recording->info().clips, 2);
  EXPECT_NO_THROW(recording->read_actions(1, 11, 1));
  expect_error([&] { recording->read_actions(0, 10, 1); }, {"u@850 is not known of 2019-03-01 10:00:00"});
}

struct Small {
  bool times = false;        // along the frames
  double single = -1;        // at least 0: no dimension of time, the file is of this hour
  bool upside_down = false;  // the rows of the orography
};

// t2m and sst of 3 frames (or one), 100 t + 10 r + c and with 1000 more, and an orography [2,3].
void write_small(const std::string& path, const Small& w) {
  const bool single = w.single >= 0;
  const int64_t T = single ? 1 : 3;
  io::GridLayout layout{.dimensions = {{"lat", 2}, {"lat_2", 2}, {"lon", 3}}};
  if (!single) layout.dimensions.push_back({"time", T});
  const std::vector<std::string> plane = {"lat", "lon"}, frames = {"time", "lat", "lon"};
  const auto units = [](const char* text) { return io::GridAttributes{{"units", {text, {}}}}; };
  const auto axis = [&](const char* name, const char* of) {
    layout.variables.push_back({.name = name, .dtype = io::DType::f64, .dimensions = {name}, .attributes = units(of)});
  };
  axis("lat", "degrees_north");
  axis("lat_2", "degrees_north");
  axis("lon", "degrees_east");
  if (single)
    layout.variables.push_back(
        {.name = "time", .dtype = io::DType::f64, .attributes = units("hours since 2019-03-01")});
  if (w.times) axis("time", "hours since 2019-03-01");
  for (const char* name : {"sst", "t2m"})
    layout.variables.push_back({.name = name, .dtype = io::DType::f32, .dimensions = single ? plane : frames});
  layout.variables.push_back(
      {.name = "orography", .dtype = io::DType::f32, .dimensions = {w.upside_down ? "lat_2" : "lat", "lon"}});
  const auto out = io::open_grid_writer(path, layout);
  out->write("lat", io::make_array<double>({2}, {58, 57}));
  out->write("lat_2", io::make_array<double>({2}, {57, 58}));
  out->write("lon", io::make_array<double>({3}, {1, 2, 3}));
  if (single) out->write("time", io::make_array({}, std::vector<double>{w.single}));
  if (w.times) out->write("time", io::make_array<double>({3}, {0, 1, 2}));
  std::vector<float> values, sst;
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t p = 0; p < 6; ++p)
      values.push_back(static_cast<float>(100 * (single ? w.single : static_cast<double>(t)) +
                                          static_cast<double>(10 * (p / 3) + p % 3)));
  }
  for (const float x : values) sst.push_back(x + 1000);
  const std::vector<int64_t> shape = single ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{T, 2, 3};
  out->write("t2m", io::make_array(shape, values));
  out->write("sst", io::make_array(shape, sst));
  out->write("orography", io::make_array<float>({2, 3}, {0, 1, 2, 3, 4, 8}));
  out->close();
}

TEST(Forcings, OfFilesWithoutTimesByTheNumberOfTheFrame) {
  const ScratchFolder folder;
  write_small(folder.path("a.zarr"), {});
  const auto recording =
      open_recording(folder.path("a.zarr"), knowing({"latitude", "sst", "orography"}, {{"sst", {1000, 1200}}}));
  const at::Tensor maps = recording->read_actions(0, 1, 2);
  ASSERT_EQ(maps.sizes(), (at::IntArrayRef{2, 3, 2, 3}));
  EXPECT_NEAR(at(maps, 1, 0, 1, 0), 57.0 / 90, 1e-6);
  EXPECT_NEAR(at(maps, 0, 1, 1, 2), 0.12, 1e-6) << "1112";
  EXPECT_NEAR(at(maps, 1, 2, 1, 2), 1, 1e-6);
  expect_error([&] { recording->read_actions(0, 2, 2); },
               {"sst is not known of frame 3", "from frame 0 until frame 2"});
}

TEST(Forcings, OfAnotherGridAreErrors) {
  const ScratchFolder folder;
  write_small(folder.path("a.nc"), {.times = true, .upside_down = true});
  expect_error([&] { open_recording(folder.path("a.nc"), knowing({"orography"})); },
               {"orography is of 2 x 3, the frames are of 2 x 3, or of other coordinates"});
}

TEST(Forcings, OfFilesOfOneTimeEach) {
  const ScratchFolder folder;
  for (const int hour : {0, 1, 2}) write_small(folder.path(fmt::format("{}.nc", 9 - hour)), {.single = double(hour)});
  const auto recording = open_recording(folder.path(), knowing({"sst", "orography"}, {{"sst", {1000, 1200}}}));
  EXPECT_EQ(recording->info().frames, 3);
  EXPECT_NEAR(at(recording->read_actions(0, 0, 3), 2, 0, 0, 0), 1, 1e-6) << "1200";
  EXPECT_NEAR(at(recording->read_actions(0, 0, 3), 2, 1, 1, 2), 1, 1e-6);
  expect_error([&] { recording->read_actions(0, 2, 2); },
               {"sst is not known of 2019-03-01 03:00:00", "the files know it", "until 2019-03-01 02:00:00"});
  EXPECT_NO_THROW(open_recording(folder.path(), knowing({"orography"}))->read_actions(0, 2, 2));
}

}  // namespace
}  // namespace convssm::data
