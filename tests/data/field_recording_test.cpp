// Recordings in grid files: what they say of themselves, several files as one, gaps, missing pixels, what is known in advance.
#include "convssm/data/field_recording.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "convssm/base/error.h"
#include "convssm/data/field_variables.h"
#include "convssm/data/file_check.h"
#include "convssm/data/folder.h"
#include "convssm/data/pixels.h"
#include "convssm/io/grib.h"
#include "convssm/io/grib_messages.h"
#include "convssm/io/grid_writer.h"
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
  const auto recording = open("a.nc");
  for (const Channel& channel : recording->info().named_channels) names.push_back(channel.name);
  EXPECT_EQ(names, (std::vector<std::string>{"t2m", "u@850", "u@500"}));
}

TEST_F(FieldRecordings, APeriodCanBeChosen) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 30)});  // from 2019-03-01 on
  write_fields(path("b.nc"), {.hours = hours_from(40, 30)});
  const auto all = open("", with_variables({"t2m"}));
  RecordingOptions options = with_variables({"t2m"});
  options.from = "2019-03-01T20:00", options.until = "2019-03-02 18:00";
  const auto some = open("", options);
  ASSERT_EQ(some->info().lengths, (std::vector<int64_t>{10, 3}));
  for (int64_t piece = 0; piece < 2; ++piece) {
    const auto same = [&](int64_t first, int64_t frame) {
      const io::Array a = all->read(piece, first + frame, 1), b = some->read(piece, frame, 1);
      return std::memcmp(a.bytes().data(), b.bytes().data(), a.byte_count()) == 0;
    };
    EXPECT_TRUE(same(piece == 0 ? 20 : 0, 0) && same(piece == 0 ? 20 : 0, 2)) << piece;
  }
  EXPECT_EQ(some->read_times(1, 0, 1), all->read_times(1, 0, 1));
  options.from = "2020-01-01", options.until = "";
  expect_error([&] { open("", options); },
               {"no frame from 2020-01-01 to the end", "2019-03-01 00:00:00 to 2019-03-03 21:00:00"});
  options.from = "yesterday";
  expect_error([&] { open("", options); }, {"yesterday"});
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

// What NetCDF-4 writes is HDF5 by another name: with times, or where variables are asked for, it is fields.
TEST_F(FieldRecordings, Hdf5WithTimesIsFields) {
  const auto write = [&](const std::string& name, double first) {
    write_fields(path("a.nc"), {.hours = hours_from(first, 5)});
    std::filesystem::rename(path("a.nc"), path(name));
  };
  write("b.he5", 0);
  EXPECT_EQ(open("")->info().kind, "field");
  std::filesystem::rename(path("b.he5"), path("b.HDF5"));
  write("a.h5", 5);
  EXPECT_EQ(open("b.HDF5")->info().kind, "field");
  EXPECT_EQ(open("a.h5", with_variables({"u@850"}))->info().named_channels[0].units, "m s-1");
  EXPECT_EQ(open("b.HDF5", {.key = "u"})->info().kind, "array");
  const auto both = open("", with_variables({"t2m"}));
  EXPECT_EQ(both->info().lengths, std::vector<int64_t>{10});
  EXPECT_EQ(dataset({{"variables", {"t2m"}}, {"low", 200}, {"high", 400}})->axes()->step, 3600);
  const std::string plain = std::string(CONVSSM_SOURCE_DIR) + "/tests/io/data/types.h5";
  EXPECT_EQ(open_recording(plain, {.key = "summed"})->info().kind, "array");
  EXPECT_FALSE(holds_fields_of_cf(plain));
}

// Simulations of several files each.
TEST_F(FieldRecordings, FoldersWhoseTimesOverlapAreClipsOfTheirOwn) {
  for (const char* name : {"one", "two"}) {
    std::filesystem::create_directory(path(name));
    write_fields(path(name) + "/b.nc", {.hours = hours_from(0, 10)});
    write_fields(path(name) + "/a.nc", {.hours = hours_from(10, 5), .missing = {2}});
  }
  write_fields(path("two/c.nc"), {.hours = hours_from(20, 2)});
  const auto recording = open("", with_variables({"t2m"}));
  EXPECT_FALSE(recording->info().in_time_order);
  EXPECT_EQ(recording->info().lengths, (std::vector<int64_t>{15, 15, 2}));
  for (const int64_t clip : {0, 1}) {
    const io::Array across = recording->read(clip, 9, 2);
    EXPECT_NEAR(across.values<float>()[0], t2m_at(9, 0, 0), 1e-4);
    EXPECT_NEAR(across.values<float>()[24], t2m_at(10, 0, 0), 1e-4);
  }
  EXPECT_EQ(recording->read_times(1, 14, 1), std::vector<double>{1551398400.0 + 14 * 3600});
  write_fields(path("two/d.nc"), {.hours = hours_from(21, 2)});
  expect_error([&] { open("", with_variables({"t2m"})); }, {"overlap", "two/c.nc", "two/d.nc"});
}

TEST_F(FieldRecordings, FilesOfSomeOfTheSameTimesAreNoSimulations) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 10)});
  write_fields(path("b.nc"), {.hours = {0, 2, 4}});
  expect_error([&] { open("", with_variables({"t2m"})); }, {"overlap"});
  write_fields(path("b.nc"), {.hours = {4, 2, 6}});
  expect_error([&] { open("", with_variables({"t2m"})); }, {"b.nc'", "must grow", "frame 1"});
}

// What io::GridLayout holds, of 3 frames of 2 x 3; all zeros.
void write_zeros(const std::string& path, std::vector<io::GridVariable> variables,
                 const std::map<std::string, std::vector<double>>& values) {
  const auto out = io::open_grid_writer(
      path, {.dimensions = {{"time", 3}, {"time1", 3}, {"lat", 2}, {"lon", 3}}, .variables = variables});
  for (const io::GridVariable& variable : variables) {
    const auto known = values.find(variable.name);
    const bool plane = variable.dimensions.size() == 3;
    const auto size = static_cast<size_t>(plane ? 18 : variable.dimensions[0] == "lat" ? 2 : 3);
    std::vector<double> all = known == values.end() ? std::vector<double>(size) : known->second;
    out->write(variable.name,
               io::make_array(plane ? std::vector<int64_t>{3, 2, 3} : std::vector{static_cast<int64_t>(size)}, all));
  }
  out->close();
}

io::GridVariable doubles(const std::string& name, std::vector<std::string> dimensions,
                         io::GridAttributes attributes = {}) {
  return {
      .name = name, .dtype = io::DType::f64, .dimensions = std::move(dimensions), .attributes = std::move(attributes)};
}

// As archives have them: a file for each variable and year.
TEST_F(FieldRecordings, FilesOfOneVariableEachAreOne) {
  const io::GridAttributes hours{{"units", {"hours since 2019-03-01", {}}}};
  const auto write = [&](const std::string& file, const char* variable, double first, double value) {
    write_zeros(path(file), {doubles("time", {"time"}, hours), doubles(variable, {"time", "lat", "lon"})},
                {{"time", {first, first + 1, first + 2}}, {variable, std::vector<double>(18, value)}});
  };
  write("a_1.nc", "a", 3, 1);
  write("a_2.nc", "a", 0, 2);
  write("b_1.nc", "b", 0, 3);
  write("b_2.zarr", "b", 3, 4);
  for (const auto& names : std::vector<std::vector<std::string>>{{}, {"a", "b"}, {"b", "a"}}) {
    const auto recording = open("", with_variables(names));
    EXPECT_EQ(recording->info().lengths, std::vector<int64_t>{6});
    ASSERT_EQ(recording->info().channels, 2);
    const bool turned = !names.empty() && names[0] == "b";
    EXPECT_EQ(recording->info().named_channels[0].name, turned ? "b" : "a");
    const io::Array frames = recording->read(0, 2, 2);
    const std::vector<float> wanted{2, 3, 1, 4};  // a and b of hours 2 and 3
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(frames.values<float>()[i * 6], wanted[turned ? i ^ 1 : i]);
  }
  expect_error([&] { open("", with_variables({"b"})); }, {"a_1.nc' has none of the variables b"});
  write("b_2.zarr", "b", 4, 4);
  expect_error([&] { open(""); },
               {"the same variables, or each some of them at the same times", "a_1.nc", "data.variables"});
}

TEST_F(FieldRecordings, ChannelsOfOtherTimesAreErrors) {
  const io::GridAttributes hours{{"units", {"hours since 2019-03-01", {}}}};
  const std::vector<io::GridVariable> variables{doubles("time", {"time"}, hours), doubles("time1", {"time1"}, hours),
                                                doubles("a", {"time", "lat", "lon"}),
                                                doubles("b", {"time1", "lat", "lon"})};
  write_zeros(path("a.nc"), variables, {{"time", {0, 1, 2}}, {"time1", {0, 1, 2}}});
  EXPECT_EQ(open("a.nc")->info().channels, 2);
  write_zeros(path("a.nc"), variables, {{"time", {0, 1, 2}}, {"time1", {0, 3, 6}}});
  expect_error([&] { open("a.nc"); },
               {"frame 1 of b is of 2019-03-01 03:00:00 and that of a of 2019-03-01 01:00:00", "data.variables"});
}

TEST_F(FieldRecordings, Hdf5WithoutTimesIsFieldsIfVariablesAreAskedFor) {
  write_zeros(path("a.nc"), {doubles("a", {"time", "lat", "lon"})}, {});
  std::filesystem::rename(path("a.nc"), path("a.h5"));
  EXPECT_EQ(open("a.h5", with_variables({"a"}))->info().kind, "field");
  EXPECT_EQ(open("a.h5", {.key = "a"})->info().kind, "array");
}

TEST_F(FieldRecordings, LatitudesMayBeDegreesOrNumbers) {
  for (const io::GridAttributes& attributes : {io::GridAttributes{},
                                               {{"units", {"degrees", {}}}},
                                               {{"units", {"degrees", {}}}, {"standard_name", {"latitude", {}}}}}) {
    write_zeros(path("a.zarr"), {doubles("lat", {"lat"}, attributes), doubles("a", {"time", "lat", "lon"})},
                {{"lat", {50, 49}}});
    EXPECT_TRUE(open("a.zarr")->info().axes.has_latitudes());
  }
  write_zeros(path("a.zarr"), {doubles("lat", {"lat"}, {{"units", {"m", {}}}}), doubles("a", {"time", "lat", "lon"})},
              {});
  EXPECT_FALSE(open("a.zarr")->info().axes.has_latitudes());
}

TEST_F(FieldRecordings, BothNamesOfACalendarAreOne) {
  for (const auto& [name, calendar, first] :
       {std::tuple{"a.nc", "gregorian", 0.0}, {"b.nc", "standard", 3.0}, {"c.nc", "proleptic_gregorian", 6.0}}) {
    write_zeros(path(name),
                {doubles("time", {"time"}, {{"units", {"hours since 2019-03-01", {}}}, {"calendar", {calendar, {}}}}),
                 doubles("a", {"time", "lat", "lon"})},
                {{"time", {first, first + 1, first + 2}}});
  }
  EXPECT_EQ(open("")->info().frames, 9);
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
  expect_error([&] { dataset(options)->clip(Split::train, 0, 10); }, {"clip 0, frame 0", "row 0, column 0", "nan"});
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

// The messages of a GRIB file, a file each, named in the reverse order of the file.
void split_grib(const std::string& path, const ScratchFolder& to, int64_t most) {
  const std::string whole = read_text(path);
  std::vector<uint64_t> begins;
  io::for_each_grib_field(*io::open_source(path),
                          [&](const io::GribField& field, const io::GribHeader&) { begins.push_back(field.offset); });
  begins.push_back(whole.size());
  for (size_t i = 0; i + 1 < begins.size() && static_cast<int64_t>(i) < most; ++i) {
    to.write(fmt::format("{:04}.grib", begins.size() - i), whole.substr(begins[i], begins[i + 1] - begins[i]));
  }
}

TEST_F(FieldRecordings, GribFilesOfOneTimeEachAreOne) {
  if (!io::reads_grib()) GTEST_SKIP() << "built without eccodes";
  const std::string first = std::string(CONVSSM_SOURCE_DIR) + "/tests/io/data/grib/first.grib";
  const auto whole = open_recording(first, with_variables({"tp"}));  // steps of 3, 6 and 9 hours of one forecast
  EXPECT_EQ(whole->info().frames, 3);
  EXPECT_EQ(whole->info().axes.step, 3 * 3600);
  EXPECT_TRUE(whole->info().axes.has_latitudes());
  EXPECT_EQ(whole->read_times(0, 0, 1), std::vector<double>{1582912800.0 + 3 * 3600});
  split_grib(first, folder_, 100);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {  // those of t2m left out
    const auto file = io::open_grib(entry.path());
    if (!file->find("tp")) std::filesystem::remove(entry.path());
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) paths.push_back(entry.path());
  for (size_t i = 0; i < paths.size(); ++i)  // as GFS names its files
    std::filesystem::rename(paths[i], path(fmt::format("gfs.t00z.pgrb2.0p25.f{:03}", i)));
  folder_.write("README", "of the files");
  const auto parts = open("", with_variables({"tp"}));
  EXPECT_EQ(dataset({{"variables", {"tp"}},
                     {"low", 0},
                     {"high", 9999},
                     {"missing", "mask"},
                     {"test_fraction", 0},
                     {"valid_fraction", 0}})
                ->length(Split::train, 0),
            3);
  EXPECT_TRUE(parts->info().in_time_order);
  EXPECT_EQ(parts->info().lengths, std::vector<int64_t>{3});
  EXPECT_EQ(parts->read_times(0, 0, 4), whole->read_times(0, 0, 4));
  const io::Array a = parts->read(0, 0, 3), b = whole->read(0, 0, 3);
  EXPECT_EQ(std::memcmp(a.bytes().data(), b.bytes().data(), b.byte_count()), 0);
}

// The cube has the same name at the surface; without that its name says no level.
TEST_F(FieldRecordings, NamesOfGribAreGoodForFilesThatNeedThemOrNot) {
  if (!io::reads_grib()) GTEST_SKIP() << "built without eccodes";
  const std::string cube = std::string(CONVSSM_SOURCE_DIR) + "/tests/io/data/grib/cube.grib";
  split_grib(cube, folder_, 16);
  std::string levels;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) levels += read_text(entry.path());
  folder_.write("levels.grib", levels);
  EXPECT_EQ(io::open_grib(path("levels.grib"))->find("t_isobaricInhPa"), nullptr);
  RecordingOptions options = with_variables({"t_isobaricInhPa@500"});
  options.fields.select = {{"number", 1}};
  const auto whole = open_recording(cube, options), part = open("levels.grib", options);
  EXPECT_EQ(part->info().named_channels[0].name, "t_isobaricInhPa@500");
  for (const int64_t clip : {0, 1}) {
    const io::Array a = part->read(clip, 0, 2), b = whole->read(clip, 0, 2);
    EXPECT_EQ(std::memcmp(a.bytes().data(), b.bytes().data(), b.byte_count()), 0);
  }
}

TEST_F(FieldRecordings, AMonthOfEra5MessageByMessage) {
  const std::string era5 = std::string(CONVSSM_SOURCE_DIR) + "/../shared/assets/fields/era5-2mt-2019-03-uk.grib";
  if (!io::reads_grib() || !std::filesystem::exists(era5)) GTEST_SKIP() << "no eccodes, or no " << era5;
  split_grib(era5, folder_, 30);
  const auto parts = open("");
  EXPECT_EQ(parts->info().lengths, std::vector<int64_t>{30});
  EXPECT_EQ(parts->info().axes.step, 3600);
  EXPECT_EQ(parts->read_times(0, 29, 1), std::vector<double>{1551398400.0 + 29 * 3600});
  const io::Array a = parts->read(0, 20, 10), b = open_recording(era5)->read(0, 20, 10);
  EXPECT_EQ(std::memcmp(a.bytes().data(), b.bytes().data(), b.byte_count()), 0);
}

// Of a file that is written anew while it is read, whatever is other than it was.
TEST_F(FieldRecordings, AFileThatChangesWhileItIsReadIsAnError) {
  const FieldsToWrite before{.hours = hours_from(0, 10)};
  for (const auto& [after, what] : std::vector<std::pair<FieldsToWrite, std::string>>{
           {{.hours = hours_from(0, 10), .height = 9, .width = 11}, "its grid was 4 x 6, now it is 9 x 11"},
           {{.hours = hours_from(0, 10), .height = 2}, "its grid was 4 x 6, now it is 2 x 6"},
           {{.hours = hours_from(0, 10), .latitude = 50}, "of other coordinates"},
           {{.hours = hours_from(1, 10)}, "its frames are of other times"},
           {{.hours = hours_from(0, 12)}, "it had 10 frames, now 12"}}) {
    for (const char* name : {"a.nc", "a.zarr"}) {
      write_fields(path(name), before);
      const auto recording = open(name, with_variables({"t2m"}));
      recording->read(0, 3, 2);
      write_fields(path(name), after);
      std::filesystem::last_write_time(path(name),
                                       std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
      const auto changed = [&](const std::function<void()>& read) {
        try {
          read();
          ADD_FAILURE() << what << ": no error";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
          EXPECT_NE(std::string(error.what()).find("has changed since it was opened"), std::string::npos)
              << error.what();
        }
      };
      expect_error([&] { recording->read(0, 3, 2); }, {name, "has changed since it was opened", what});
      std::vector<float> pixels(2 * 4 * 6);
      changed([&] { recording->read_pixels(0, 3, 2, {{{"", 200, 400}}}, pixels.data()); });
      if (after.hours != hours_from(1, 10) && after.latitude == 58) {
        changed([&] { for_each_chunk(recording->info(), [](Recording&, int64_t, int64_t, int64_t) { return true; }); });
      }
    }
  }
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
