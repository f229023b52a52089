// Fields in grid files, as a process: from the first look to a forecast on the same grid that goes on in time.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "../data/field_files.h"
#include "convssm/io/grid_open.h"
#include "program.h"

namespace convssm {
namespace {

using data::testing::hours_from;
using data::testing::write_fields;

class CliFields : public ::testing::Test {
 protected:
  std::string at(const std::string& name) { return "'" + folder.path(name) + "'"; }
  std::vector<double> values(const io::GridFile& file, const char* name) {
    const io::Array array = file.read(file.variable(name));
    if (array.dtype() == io::DType::f32) return {array.values<float>().begin(), array.values<float>().end()};
    return {array.values<double>().begin(), array.values<double>().end()};
  }
  ScratchFolder folder;
};

TEST_F(CliFields, AreInspectedTrainedOnAndForecast) {
  write_fields(folder.path("a.nc"), {.hours = hours_from(0, 60), .height = 8, .width = 10, .missing = {0, 5}});
  write_fields(folder.path("b.nc"), {.hours = hours_from(60, 40), .height = 8, .width = 10});
  std::filesystem::create_directory(folder.path("d"));
  for (const char* name : {"a.nc", "b.nc"}) std::filesystem::rename(folder.path(name), folder.path("d") + "/" + name);

  const Outcome look =
      run("data inspect " + at("d") + " 'variables=[t2m]' 'forcings=[hour, orography]' --config " + at("own.yaml"));
  ASSERT_EQ(look.code, 0) << look.err;
  for (const char* text :
       {"'t2m' i16 [60, 8, 10] [time, lat, lon]", "2 files in the order of their times are one recording",
        "times: 2019-03-01 00:00:00 to 2019-03-05 03:00:00, a frame every 1 hour",
        "channel    't2m' [K]: 270.01 to 369.79", "3 maps", "0.025% missing"}) {
    expect_contains(look.out, text);
  }
  const std::string config = read_all(folder.path("own.yaml"));
  for (const char* text : {"variables:", "forcings:", "action_maps: 3", "mask_input: true", "low:"})
    expect_contains(config, text);

  const Outcome train =
      run("train " + at("own.yaml") + " --run " + at("run") + " train.steps=3 train.frames=6 train.sample_interval=0",
          "OMP_NUM_THREADS=1");
  ASSERT_EQ(train.code, 0) << train.err;
  for (const char* out : {"future.nc", "future.zarr"}) {
    const Outcome forecast =
        run("generate " + at("run") + " --context " + at("d") + " --context-frames=-12 --frames 7 --out " + at(out));
    ASSERT_EQ(forecast.code, 0) << forecast.err;
    const auto file = io::open_grid(folder.path(out));
    const io::GridVariable& t2m = file->variable("t2m");
    EXPECT_EQ(t2m.shape, (std::vector<int64_t>{7, 8, 10}));
    EXPECT_EQ(t2m.dimensions, (std::vector<std::string>{"time", "lat", "lon"}));
    EXPECT_EQ(t2m.attributes.at("units").text, "K");
    EXPECT_EQ(file->variable("time").attributes.at("units").text, "hours since 2019-03-05 04:00:00");
    EXPECT_EQ(values(*file, "time"), (std::vector<double>{0, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(values(*file, "lat")[1], 57.75);
    for (const double x : values(*file, "t2m")) EXPECT_TRUE(x >= 265 && x <= 375) << x;
  }
  const Outcome with_context = run("generate " + at("run") + " --context " + at("d") +
                                   " --context-frames=-5 --with-context --frames 2 --out " + at("both.nc"));
  ASSERT_EQ(with_context.code, 0) << with_context.err;
  const auto both = io::open_grid(folder.path("both.nc"));
  EXPECT_EQ(both->variable("time").attributes.at("units").text, "hours since 2019-03-04 23:00:00");
  EXPECT_NEAR(values(*both, "t2m")[0], data::testing::t2m_at(95, 0, 0), 1e-3);
}

TEST_F(CliFields, AreConverted) {
  write_fields(folder.path("a.nc"), {.hours = hours_from(0, 6)});
  ASSERT_EQ(run("data convert " + at("a.nc") + " " + at("b.zarr") + " 'variables=[u@850]'").code, 0);
  ASSERT_EQ(run("data convert " + at("a.nc") + " " + at("b.gif") + " 'variables=[t2m]'").code, 0);
  ASSERT_EQ(run("data convert " + at("a.nc") + " " + at("pictures/") + " 'variables=[t2m]' --frames 3").code, 0);
  expect_contains(run("data inspect " + at("pictures")).out, "1 of 3 frames");
  ASSERT_EQ(run("data convert " + at("a.nc") + " " + at("c.zarr") + " 'variables=[u@850]' --zarr-version 3").code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path("c.zarr/zarr.json")));
  const auto file = io::open_grid(folder.path("b.zarr"));
  EXPECT_EQ(file->variable("u@850").shape, (std::vector<int64_t>{6, 4, 6}));
  const Outcome there = run("data convert " + at("a.nc") + " " + at("b.zarr"));
  EXPECT_EQ(there.code, 2);
  expect_contains(there.err, "b.zarr is there already; --force replaces it");
}

TEST_F(CliFields, WhatIsWrongWithThemIsSaid) {
  write_fields(folder.path("a.nc"), {.hours = hours_from(0, 6)});
  const Outcome unknown = run("data inspect " + at("a.nc") + " 'variables=[t2n]'");
  EXPECT_EQ(unknown.code, 3);
  expect_contains(unknown.err, "did you mean 't2m'?");
  std::filesystem::resize_file(folder.path("a.nc"), std::filesystem::file_size(folder.path("a.nc")) / 2);
  const Outcome cut = run("data inspect " + at("a.nc"));
  EXPECT_EQ(cut.code, 3) << cut.err;
  expect_contains(cut.err, "a.nc");
}

}  // namespace
}  // namespace convssm
