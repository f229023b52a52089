// What the attributes of a variable say of its values: scale, fill values, ranges, numbers without a sign. Wanted values are those that
// netCDF4-python's masked reading gives, but for attributes of another type than the variable's, which it leaves out.
#include "convssm/data/field_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../base/scratch_folder.h"
#include "convssm/io/grid_writer.h"

namespace convssm::data {
namespace {

using io::DType;
using Values = std::vector<double>;

io::GridAttribute numbers_of(DType dtype, Values values) { return {"", std::move(values), dtype}; }

// The values of a field [2,3] that is stored so; NaN where nothing was measured.
template <typename T>
Values read_back(const std::string& ending, const std::vector<T>& stored, const io::GridAttributes& attributes,
                 bool declares = true) {
  const ScratchFolder folder;
  const std::string path = folder.path("a" + ending);
  io::GridLayout layout{.dimensions = {{"y", 2}, {"x", 3}}};
  layout.variables = {{.name = "v", .dtype = io::dtype_of<T>(), .dimensions = {"y", "x"}, .attributes = attributes}};
  const auto out = io::open_grid_writer(path, layout);
  out->write("v", io::make_array({2, 3}, stored));
  out->close();
  const FieldFile file(path, {});
  EXPECT_EQ(file.declares_missing(), declares);
  const io::Array read = file.read(0, 1);
  return {read.values<float>().begin(), read.values<float>().end()};
}

void expect_values(const Values& found, const Values& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(wanted[i]))
      EXPECT_TRUE(std::isnan(found[i])) << i << ": " << found[i];
    else
      EXPECT_NEAR(found[i], wanted[i], 1e-6 * std::abs(wanted[i])) << i;
  }
}

TEST(FieldValues, NumbersWithoutASign) {
  for (const char* ending : {".nc", ".zarr"}) {
    SCOPED_TRACE(ending);
    // GOES-R: valid_range = 0s, -6s.
    expect_values(read_back<int16_t>(ending, {0, 5, -7, -6, -5, -1},
                                     {{"_Unsigned", {"true", {}}},
                                      {"_FillValue", numbers_of(DType::i16, {-1})},
                                      {"valid_range", numbers_of(DType::i16, {0, -6})}}),
                  {0, 5, 65529, 65530, NAN, NAN});
    expect_values(read_back<int8_t>(ending, {0, 1, -1, -2, 127, -128},
                                    {{"_Unsigned", {"true", {}}}, {"missing_value", numbers_of(DType::i16, {255})}}),
                  {0, 1, NAN, 254, 127, 128});
    expect_values(
        read_back<int8_t>(ending, {0, 1, -1, -2, 127, -128}, {{"missing_value", numbers_of(DType::i8, {-1})}}),
        {0, 1, NAN, -2, 127, -128});
  }
}

// 1e20 as f32 is 100000002004087734272.
TEST(FieldValues, AttributesAreComparedInTheTypeOfTheVariable) {
  for (const char* ending : {".nc", ".zarr"}) {
    SCOPED_TRACE(ending);
    for (const char* name : {"_FillValue", "missing_value"}) {
      expect_values(read_back<float>(ending, {1, 1e20F, 0.1F, -1, 2, 3}, {{name, numbers_of(DType::f64, {1e20})}}),
                    {1, NAN, 0.1F, -1, 2, 3});
    }
    expect_values(
        read_back<float>(ending, {0.1F, 0.2F, 0.3F, 0.05F, 0.35F, 0},
                         {{"valid_min", numbers_of(DType::f64, {0.1})}, {"valid_max", numbers_of(DType::f64, {0.3})}}),
        {0.1F, 0.2F, 0.3F, NAN, NAN, NAN});
    expect_values(
        read_back<double>(ending, {1, 1e20, 0.1, -1, 2, 3}, {{"missing_value", numbers_of(DType::f64, {1e20, 2})}}),
        {1, NAN, 0.1, -1, NAN, 3});
  }
}

TEST(FieldValues, RangesAreOfStoredNumbersOrOfWhatTheyStandFor) {
  for (const char* ending : {".nc", ".zarr"}) {
    SCOPED_TRACE(ending);
    expect_values(read_back<int16_t>(ending, {17999, 18000, 20000, 32001, 32000, 0},
                                     {{"scale_factor", numbers_of(DType::f64, {0.01})},
                                      {"valid_range", numbers_of(DType::f64, {180, 320})}}),
                  {NAN, 180, 200, NAN, 320, NAN});
    expect_values(read_back<int16_t>(ending, {9, 10, 15, 20, 21, 0},
                                     {{"scale_factor", numbers_of(DType::f64, {0.1})},
                                      {"add_offset", numbers_of(DType::f64, {270})},
                                      {"valid_min", numbers_of(DType::i16, {10})},
                                      {"valid_max", numbers_of(DType::i16, {20})}}),
                  {NAN, 271, 271.5, 272, NAN, NAN});
    expect_values(read_back<int16_t>(ending, {-3, -2, -1, 0, 1, 2},
                                     {{"scale_factor", numbers_of(DType::f64, {-2.5})},
                                      {"valid_range", numbers_of(DType::f64, {-2.5, 5})}}),
                  {NAN, 5, 2.5, 0, -2.5, NAN});
    expect_values(read_back<int16_t>(
                      ending, {-3, -2, -1, 0, 1, 2},
                      {{"scale_factor", numbers_of(DType::f64, {-1})}, {"valid_min", numbers_of(DType::f64, {0})}}),
                  {3, 2, 1, 0, NAN, NAN});
  }
}

TEST(FieldValues, WhatWasNeverWrittenIsNotMeasuredInNetcdf) {
  const float fill = 9.9692099683868690e+36F;
  expect_values(read_back<float>(".nc", {1, fill, 2, 3, 4, 5}, {}, false), {1, NAN, 2, 3, 4, 5});
  expect_values(read_back<int16_t>(".nc", {1, -32767, -32768, 3, 4, 5}, {}, false), {1, NAN, -32768, 3, 4, 5});
  expect_values(read_back<float>(".nc", {1, fill, 2, 3, 4, 5}, {{"_FillValue", numbers_of(DType::f32, {2})}}),
                {1, fill, NAN, 3, 4, 5});
  expect_values(read_back<float>(".zarr", {1, fill, 2, 3, 4, 5}, {}, false), {1, fill, 2, 3, 4, 5});
  expect_values(read_back<int8_t>(".nc", {1, -127, 2, 3, 4, 5}, {}, false), {1, -127, 2, 3, 4, 5});
}

}  // namespace
}  // namespace convssm::data
