// What is converted holds the same numbers, whichever way it went.
#include "convssm/data/convert.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "convssm/base/error.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "field_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;
using testing::hours_from;
using testing::write_fields;

class Conversions : public ::testing::Test {
 protected:
  std::unique_ptr<Recording> convert(const std::string& from, const std::string& to,
                                     const RecordingOptions& options = {}, const ConvertOptions& how = {}) {
    convert_clip(*open_recording(folder_.path(from), options), 0, folder_.path(to), how);
    return open_recording(folder_.path(to));
  }
  at::Tensor frames(Recording& recording) {
    const io::Array all = recording.read(0, 0, recording.info().frames);
    return io::to_tensor(all).to(at::kDouble);
  }

  ScratchFolder folder_;
};

TEST_F(Conversions, FieldsKeepNumbersNamesPlacesAndTimes) {
  write_fields(folder_.path("a.nc"), {.hours = hours_from(5, 20), .missing = {3}});
  RecordingOptions options;
  options.fields.variables = {"t2m", "u@500"};
  const auto original = open_recording(folder_.path("a.nc"), options);
  auto zarr = convert("a.nc", "b.zarr", options);
  const auto back = convert("b.zarr", "c.nc");
  for (Recording* made : {zarr.get(), back.get()}) {
    const RecordingInfo &a = original->info(), &b = made->info();
    EXPECT_TRUE(frames(*original).allclose(frames(*made), 0, 0, true));
    ASSERT_EQ(b.named_channels.size(), 2u);
    EXPECT_EQ(b.named_channels[1].name, "u@500");
    EXPECT_EQ(b.named_channels[1].units, "m s-1");
    EXPECT_EQ(a.axes.rows.values, b.axes.rows.values);
    EXPECT_EQ(b.axes.columns.units, "degrees_east");
    EXPECT_EQ(original->read_times(0, 0, 20), made->read_times(0, 0, 20));
    EXPECT_EQ(a.axes.calendar, b.axes.calendar);
    EXPECT_TRUE(b.may_miss || made->info().frames == 20);
  }
  const auto array = convert("a.nc", "d.npy", options, {.first = 4, .frames = 6});
  EXPECT_TRUE(frames(*array).equal(frames(*original).slice(0, 4, 10)));
}

TEST_F(Conversions, PicturesKeepTheirBytesAndArraysTheirTypes) {
  const at::Tensor video = (at::arange(5 * 8 * 6 * 3, at::kLong) % 251).view({5, 8, 6, 3}).to(at::kByte);
  const at::Tensor actions = at::arange(5, at::kLong);
  const std::vector<io::NamedArray> arrays{{"video", io::to_array(video)}, {"actions", io::to_array(actions)}};
  io::write_npz(folder_.path("a.npz"), arrays, false);
  const auto again = convert("a.npz", "b.npz");
  EXPECT_TRUE(frames(*again).equal(video.permute({0, 3, 1, 2}).to(at::kDouble)));
  EXPECT_TRUE(again->read_actions(0, 0, 5).equal(actions));
  const auto fields = convert("a.npz", "c.nc");
  EXPECT_TRUE(frames(*fields).equal(video.permute({0, 3, 1, 2}).to(at::kDouble)));
  EXPECT_EQ(fields->info().named_channels[2].name, "channel_2");
}

TEST_F(Conversions, WhatCannotBeDoneIsSaid) {
  write_fields(folder_.path("a.nc"), {.hours = hours_from(0, 5)});
  expect_error([&] { convert("a.nc", "b.txt"); }, {"ends with .npy, .npz, .nc", "b.txt"});
  expect_error([&] { convert("a.nc", "b.npy", {}, {.first = 2, .frames = 4}); }, {"has 5 frames, 4 from 2 on"});
  EXPECT_FALSE(std::filesystem::exists(folder_.path("b.npy")));
}

}  // namespace
}  // namespace convssm::data
