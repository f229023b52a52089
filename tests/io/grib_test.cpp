// GRIB files that eccodes' own Python package made (data/make_grib_data.py), whose values are a function of place and time; a month of
// ERA5, where it is at hand; damage.
#include "convssm/io/grib.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "../base/scratch_folder.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/grib_messages.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

using Names = std::vector<std::string>;

std::string grib_path(const std::string& name) { return data_path("grib/" + name + ".grib"); }

class Grib : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!reads_grib()) GTEST_SKIP() << "built without eccodes";
  }
};

double element(const Array& array, size_t i) {
  if (array.dtype() == DType::i64) return static_cast<double>(array.values<int64_t>()[i]);
  return array.dtype() == DType::f32 ? array.values<float>()[i] : array.values<double>()[i];
}

std::vector<double> numbers_of(const GridFile& file, const std::string& name) {
  const Array array = file.read(file.variable(name));
  std::vector<double> numbers;
  for (size_t i = 0; i < array.element_count(); ++i) numbers.push_back(element(array, i));
  return numbers;
}

// make_grib_data.py has the same.
double value_at(double latitude, double longitude, double more = 0) { return latitude * 100 + longitude + 10 + more; }

TEST_F(Grib, PutsFieldsTogether) {
  const auto file = open_grib(grib_path("cube"));
  EXPECT_EQ(file->kind(), "GRIB");
  Names names;
  for (const GridVariable& variable : file->variables()) names.push_back(variable.name);
  EXPECT_EQ(names, (Names{"latitude", "level", "longitude", "number", "t2m", "t_isobaricInhPa", "t_surface", "time",
                          "time_2"}));
  const GridVariable& t = file->variable("t_isobaricInhPa");
  EXPECT_EQ(t.dimensions, (Names{"time", "number", "level", "latitude", "longitude"}));
  EXPECT_EQ(t.shape, (std::vector<int64_t>{4, 2, 2, 3, 4}));
  EXPECT_EQ(t.chunks, (std::vector<int64_t>{1, 1, 1, 3, 4}));
  EXPECT_EQ(t.attributes.at("units").text, "K");
  EXPECT_EQ(t.attributes.at("long_name").text, "Temperature");
  EXPECT_EQ(t.attributes.at("standard_name").text, "air_temperature");
  EXPECT_EQ(t.attributes.at("GRIB_typeOfLevel").text, "isobaricInhPa");
  EXPECT_EQ(numbers_of(*file, "time_2"),
            (std::vector<double>{1582912800, 1583044200}));  // date -d '2020-03-01 06:30Z' +%s
  EXPECT_EQ(file->variable("time_2").attributes.at("units").text, "seconds since 1970-01-01 00:00:00");
  EXPECT_EQ(numbers_of(*file, "time"), (std::vector<double>{1582912800, 1582934400, 1583044200, 1583065800}))
      << "starts and steps of 0 and 6 hours";
  EXPECT_EQ(numbers_of(*file, "level"), (std::vector<double>{500, 850}));
  EXPECT_EQ(file->variable("level").attributes.at("units").text, "hPa");
  EXPECT_EQ(numbers_of(*file, "latitude"), (std::vector<double>{52, 51, 50}));
  EXPECT_EQ(numbers_of(*file, "longitude"), (std::vector<double>{-4, -2, 0, 2}));
  const GridVariable& t2m = file->variable("t2m");
  EXPECT_EQ(t2m.dimensions, (Names{"time_2", "latitude", "longitude"}));
  EXPECT_EQ(t2m.attributes.at("level").numbers, std::vector<double>{2});
  EXPECT_EQ(t2m.attributes.at("GRIB_shortName").text, "2t");
  EXPECT_EQ(numbers_of(*file, "t_surface")[12], value_at(52, -4, 2000));
}

TEST_F(Grib, AnyBoxOfThem) {
  const auto file = open_grib(grib_path("cube"));
  const GridVariable& t = file->variable("t_isobaricInhPa");
  const auto expect_box = [&](const std::vector<int64_t>& first, const std::vector<int64_t>& count) {
    SCOPED_TRACE(shape_text(first) + shape_text(count));
    const Array box = file->read(t, first, count);
    std::vector<int64_t> at(5);
    for (uint64_t i = 0; i < box.element_count(); ++i) {
      uint64_t rest = i;
      for (size_t d = 5; d-- > 0; rest /= static_cast<uint64_t>(count[d])) {
        at[d] = first[d] + static_cast<int64_t>(rest % static_cast<uint64_t>(count[d]));
      }
      // Steps come before times; 500 hPa comes first.
      const int64_t more = 1000 * (at[0] / 2) + 2000 * (at[0] % 2) + 4000 * at[1] + 8000 * (1 - at[2]);
      ASSERT_EQ(element(box, i), value_at(52 - static_cast<double>(at[3]), -4 + 2 * static_cast<double>(at[4]),
                                          static_cast<double>(more)));
    }
  };
  expect_box({0, 0, 0, 0, 0}, t.shape);
  expect_box({2, 1, 0, 1, 2}, {2, 1, 2, 2, 2});
  expect_box({1, 0, 1, 2, 3}, {2, 2, 1, 1, 1});
  expect_box({3, 1, 1, 0, 1}, {1, 1, 1, 3, 2});
  expect_equal(file->read(file->variable("longitude"), std::vector<int64_t>{1}, std::vector<int64_t>{2}),
               make_array<double>({2}, {-2, 0}));
}

// Runs of a forecast that overlap are no series: the same time comes twice.
TEST_F(Grib, OverlappingForecastsKeepTheirSteps) {
  const ScratchFolder folder;
  std::string cube = read_text(grib_path("cube"));
  const auto source = memory_source("cube", as_bytes(cube));
  std::vector<std::pair<uint64_t, int64_t>> begins;
  for_each_grib_field(*source, [&](const GribField& field, const GribHeader& header) {
    begins.emplace_back(field.offset, header.time);
  });
  for (const auto& [at, time] : begins) {  // 2020-03-01 06:30 becomes 02-29 00:00, six hours behind the other
    if (time != 1583044200) continue;
    const std::string date("\x02\x1d\0\0", 4);
    cube.replace(at + 16 + 14, date.size(), date);
  }
  folder.write("runs.grib", cube);
  const auto file = open_grib(folder.path("runs.grib"));
  const GridVariable& t = file->variable("t_isobaricInhPa");
  EXPECT_EQ(t.dimensions, (Names{"time", "step", "number", "level", "latitude", "longitude"}));
  EXPECT_EQ(t.shape, (std::vector<int64_t>{2, 2, 2, 2, 3, 4}));
  EXPECT_EQ(numbers_of(*file, "time"), (std::vector<double>{1582912800, 1582934400}));
  EXPECT_EQ(numbers_of(*file, "step"), (std::vector<double>{0, 6 * 3600}));
  EXPECT_EQ(element(file->read(t), 12 * 12), value_at(52, -4, 1000 + 2000 + 8000))
      << "time 1, step 1, member 0, 500 hPa";
}

TEST_F(Grib, FirstEditionWithMissingValuesAndMinutes) {
  const auto file = open_grib(grib_path("first"));
  const GridVariable& rain = file->variable("tp");
  EXPECT_EQ(rain.dimensions, (Names{"time_2", "latitude", "longitude"})) << "others than those of t2m";
  EXPECT_EQ(rain.attributes.at("GRIB_stepType").text, "accum");
  EXPECT_EQ(numbers_of(*file, "time_2"),
            (std::vector<double>{1582912800 + 3 * 3600, 1582912800 + 6 * 3600, 1582912800 + 9 * 3600}));
  EXPECT_EQ(numbers_of(*file, "time"), (std::vector<double>{1582912800 + 600, 1582912800 + 1200, 1582912800 + 5400}));
  const Array values = file->read(rain);
  for (size_t i = 0; i < 36; ++i) {
    const size_t step = i / 12, point = i % 12;
    if (point == 1 || point == 5 + step)
      EXPECT_TRUE(std::isnan(element(values, i))) << i;
    else
      EXPECT_EQ(element(values, i), value_at(52 - static_cast<double>(point / 4),
                                             -4 + 2 * static_cast<double>(point % 4), 100 * static_cast<double>(step)));
  }
}

TEST_F(Grib, EveryScanningMode) {
  const auto file = open_grib(grib_path("scans"));
  int grids = 0, first_rows = 0, first_columns = 0;
  for (const GridVariable& variable : file->variables()) {
    if (!variable.name.starts_with("t2m")) continue;
    SCOPED_TRACE(variable.name);
    ASSERT_EQ(variable.shape, (std::vector<int64_t>{3, 4}));
    const Array values = file->read(variable);
    const auto latitudes = numbers_of(*file, variable.dimensions[0]),
               longitudes = numbers_of(*file, variable.dimensions[1]);
    for (size_t y = 0; y < 3; ++y) {
      for (size_t x = 0; x < 4; ++x) EXPECT_EQ(element(values, y * 4 + x), value_at(latitudes[y], longitudes[x]));
    }
    ++grids, first_rows += latitudes[0] == 52, first_columns += longitudes[0] == -4;
  }
  EXPECT_EQ(grids, 24);
  EXPECT_EQ(first_rows, 12);
  EXPECT_EQ(first_columns, 12);
}

TEST_F(Grib, SeveralFieldsInAMessage) {
  const auto file = open_grib(grib_path("several"));
  for (const auto& [name, more] : {std::pair{"u", 0}, {"v", 100}, {"w", 200}}) {
    const Array values = file->read(file->variable(name));
    for (size_t i = 0; i < 12; ++i) {
      if (more > 0 && i == 2)
        EXPECT_TRUE(std::isnan(element(values, i)));
      else
        EXPECT_EQ(element(values, i),
                  value_at(52 - static_cast<double>(i / 4), -4 + 2 * static_cast<double>(i % 4), more))
            << name << i;
    }
  }
}

TEST_F(Grib, PackingsAndWidths) {
  const auto file = open_grib(grib_path("packings"));
  for (const char* name : {"u", "v", "w", "q", "r", "z"}) {
    SCOPED_TRACE(name);
    const bool thirds = std::string("uvw").find(name[0]) != std::string::npos,
               wide = std::string("uw").find(name[0]) != std::string::npos;
    const GridVariable& variable = file->variable(name);
    EXPECT_EQ(variable.dtype, wide ? DType::f64 : DType::f32);
    const Array values = file->read(variable);
    for (size_t i = 0; i < 12; ++i) {
      const double want =
          value_at(52 - static_cast<double>(i / 4), -4 + 2 * static_cast<double>(i % 4), thirds ? 1.0 / 3 : 0);
      EXPECT_NEAR(element(values, i), want, wide ? 1e-6 : thirds ? 3e-4 : 0);
    }
  }
}

// Latitudes of a Gaussian grid are the roots of a Legendre polynomial (NumPy's leggauss), the map is a formula in make_grib_data.py.
TEST_F(Grib, GaussianGridsAndMaps) {
  const auto file = open_grib(grib_path("grids"));
  const auto expect_near = [&](const std::string& name, const std::vector<double>& wanted) {
    const std::vector<double> found = numbers_of(*file, name);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 2e-6) << name;
  };
  expect_near("latitude", {59.444408, 19.875719, -19.875719, -59.444408});
  expect_near("longitude", {0, 45, 90, 135, 180, 225, 270, 315});
  EXPECT_EQ(file->variable("v").dimensions, (Names{"y", "x"}));
  EXPECT_EQ(file->variable("latitude_2").dimensions, (Names{"y", "x"}));
  expect_near("latitude_2", {50.0, 50.134329, 50.091174, 51.704474, 51.846809, 51.801077});
  expect_near("longitude_2", {5.0, 8.974808, 12.959493, 4.758058, 8.92494, 13.103207});
  expect_near("v", {0, 1, 2, 3, 4, 5});
}

TEST_F(Grib, FieldsThatAreAbsentOrThereTwice) {
  const ScratchFolder folder;
  const std::string whole = read_text(grib_path("cube"));
  const auto source = memory_source("cube", as_bytes(whole));
  std::vector<uint64_t> begins;
  for_each_grib_field(*source, [&](const GribField& field, const GribHeader&) { begins.push_back(field.offset); });
  ASSERT_EQ(begins.size(), 20u);
  folder.write("hole.grib",
               whole.substr(0, begins[5]) + whole.substr(begins[6]));  // of the first time, step 6 h, member 0, 500 hPa
  const auto file = open_grib(folder.path("hole.grib"));
  const GridVariable& t = file->variable("t_isobaricInhPa");
  EXPECT_TRUE(t.attributes.contains("missing_value"));
  EXPECT_FALSE(file->variable("t2m").attributes.contains("missing_value"));
  const Array all = file->read(t);
  for (size_t i = 0; i < all.element_count(); ++i) EXPECT_EQ(std::isnan(element(all, i)), i / 12 == 4) << i;
  EXPECT_EQ(element(all, 5 * 12), value_at(52, -4, 2000)) << "850 hPa";
  folder.write("twice.grib", whole + whole.substr(begins[16], begins[17] - begins[16]));
  const auto twice = open_grib(folder.path("twice.grib"));
  expect_error(ErrorKind::data,
               fmt::format("has 2 fields of 't2m' for time 2020-02-28 18:00:00, the first two at bytes {} and {}",
                           begins[16], whole.size()),
               [&] { twice->read(twice->variable("t2m")); });
}

TEST_F(Grib, SaysWhatIsWrong) {
  expect_error(ErrorKind::data,
               "a grid of the kind 'reduced_ll', which has no rows and columns; change it: cdo setgridtype,regular",
               [] { open_grib(grib_path("reduced")); });
  expect_error(ErrorKind::io, "nowhere.grib", [] { open_grib("nowhere.grib"); });
  expect_error(ErrorKind::data, "expected a GRIB message", [] { open_grib(data_path("little_f4.npy")); });
  const auto file = open_grib(grib_path("cube"));
  set_file_memory_limit(100);
  expect_error(ErrorKind::data, "cube.grib", [&] { file->read(file->variable("t2m")); });
  set_file_memory_limit(default_file_memory);
}

TEST(GribNone, SaysWhatToInstall) {
  if (reads_grib()) GTEST_SKIP() << "built with eccodes";
  expect_error(ErrorKind::data, "libeccodes-dev", [] { open_grib(grib_path("cube")); });
}

TEST_F(Grib, FromSeveralThreads) {
  const auto file = open_grib(grib_path("cube")), other = open_grib(grib_path("first"));
  const Array cube = file->read(file->variable("t_isobaricInhPa")), rain = other->read(other->variable("t2m"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 10; ++repeat) {
        expect_equal(file->read(file->variable("t_isobaricInhPa")), cube);
        expect_equal(other->read(other->variable("t2m")), rain);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Grib, TextAndZerosBetweenMessages) {
  const ScratchFolder folder;
  const std::string whole = read_text(grib_path("several"));
  folder.write("bulletins.grib",
               "\1\r\r\n123 \r\r\nHTXC85 ECMF 010000\r\r\n" + whole + "\r\r\n\3" + std::string(5000, '\0'));
  EXPECT_EQ(open_grib(folder.path("bulletins.grib"))->variables().size(), 6u);
}

// The month that docs/own_data.md is about; numbers by eccodes' Python package.
TEST_F(Grib, AMonthOfEra5) {
  const std::string path = std::string(CONVSSM_SOURCE_DIR) + "/../shared/assets/fields/era5-2mt-2019-03-uk.grib";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const auto file = open_grib(path);
  const GridVariable& t2m = file->variable("t2m");
  EXPECT_EQ(t2m.dimensions, (Names{"time", "latitude", "longitude"}));
  ASSERT_EQ(t2m.shape, (std::vector<int64_t>{744, 33, 49}));
  const auto times = numbers_of(*file, "time"), latitudes = numbers_of(*file, "latitude"),
             longitudes = numbers_of(*file, "longitude");
  for (size_t i = 0; i < times.size(); ++i) ASSERT_EQ(times[i], 1551398400 + 3600.0 * static_cast<double>(i));
  for (size_t i = 0; i < 33; ++i) EXPECT_EQ(latitudes[i], 58 - 0.25 * static_cast<double>(i));
  for (size_t i = 0; i < 49; ++i) EXPECT_EQ(longitudes[i], -10 + 0.25 * static_cast<double>(i));
  const Array all = file->read(t2m);
  double sum = 0;
  for (size_t i = 0; i < all.element_count(); ++i) sum += element(all, i);
  EXPECT_NEAR(sum / static_cast<double>(all.element_count()), 280.7740585847981, 1e-6);
  EXPECT_EQ(all.values<float>()[0], 282.4248046875F);
  EXPECT_EQ(all.values<float>()[33 * 49 - 1], 282.0888671875F);
  EXPECT_EQ(all.values<float>()[(371 * 33 + 16) * 49 + 20], 283.37646484375F);
  EXPECT_EQ(all.values<float>()[744 * 33 * 49 - 2], 281.544677734375F);
  const Array one = file->read(t2m, std::vector<int64_t>{371, 16, 20}, std::vector<int64_t>{1, 1, 1});
  EXPECT_EQ(one.values<float>()[0], 283.37646484375F);
}

}  // namespace
}  // namespace convssm::io
