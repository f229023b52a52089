// What is converted holds the same numbers, whichever way it went.
#include "convssm/data/convert.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "convssm/base/error.h"
#include "convssm/io/grid_open.h"
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

// Of every type that a kind of file has, as it is stored.
TEST_F(Conversions, ArraysKeepTheirTypesInEveryKindOfFile) {
  const at::Tensor values = (at::arange(4 * 5 * 6 * 7, at::kDouble) * 37 - 300).view({4, 5, 6, 7});
  for (const at::ScalarType type : {at::kShort, at::kInt, at::kFloat, at::kDouble}) {
    const at::Tensor stored = (type == at::kInt ? values + 16777217 : values).to(type);  // no f32 has 2^24 + 1
    io::write_npy(folder_.path("a.npy"), io::to_array(stored));
    RecordingOptions options;
    options.layout = "TCHW";
    for (const char* name : {"b.h5", "b.tif", "b.npz", "b.npy"}) {
      convert_clip(*open_recording(folder_.path("a.npy"), options), 0, folder_.path(name), {});
      RecordingOptions again;
      if (name != std::string("b.tif")) again.layout = "TCHW";
      const auto made = open_recording(folder_.path(name), again);
      EXPECT_EQ(made->info().dtype, io::to_array(stored).dtype()) << name;
      EXPECT_TRUE(io::to_tensor(made->read(0, 0, 4)).equal(stored)) << name;
    }
    for (const char* name : {"b.nc", "b.zarr"}) {
      for (const int version : {2, 3}) {
        convert_clip(*open_recording(folder_.path("a.npy"), options), 0, folder_.path(name),
                     {.first = 1, .frames = 2, .zarr_version = version});
        const auto file = io::open_grid(folder_.path(name));
        const io::Array channel =
            file->read(file->variable("channel_3"), std::vector<int64_t>{0, 0, 0}, std::vector<int64_t>{2, 6, 7});
        EXPECT_TRUE(io::to_tensor(channel).equal(stored.slice(0, 1, 3).select(1, 3))) << name;
        if (name == std::string("b.nc")) continue;
        EXPECT_EQ(std::filesystem::exists(folder_.path("b.zarr/zarr.json")), version == 3);
      }
    }
  }
}

TEST_F(Conversions, PicturesAndVideosOfEveryKind) {
  const at::Tensor rows = at::arange(16, at::kLong).view({1, 16, 1, 1}) * 8, frames_ = at::arange(6, at::kLong) * 20;
  const at::Tensor video = (frames_.view({6, 1, 1, 1}) + rows).expand({6, 16, 24, 3}).to(at::kByte).contiguous();
  io::write_npy(folder_.path("a.npy"), io::to_array(video));
  const at::Tensor expected = video.permute({0, 3, 1, 2}).to(at::kDouble);
  const auto folder = convert("a.npy", "frames/");
  EXPECT_EQ(folder->info().kind, "frames");
  EXPECT_TRUE(frames(*folder).equal(expected));
  for (const char* name : {"b.mp4", "b.mkv", "b.avi", "b.webm"}) {
    const auto made = convert("a.npy", name, {}, {.fps = 25});
    ASSERT_EQ(made->info().frames, 6) << name;
    at::Tensor seen = frames(*made);
    EXPECT_LT((seen - expected).abs().mean().item<double>(), 4) << name;
    EXPECT_TRUE(io::to_tensor(made->read(0, 3, 2)).to(at::kDouble).equal(seen.slice(0, 3, 5))) << name;
  }
}

// What is black and what white is found in what is converted alone.
TEST_F(Conversions, PicturesOfNumbersGoFromTheLeastToTheLargest) {
  at::Tensor values = at::zeros({5, 8, 8});
  values[1][0][0] = 10, values[4] = 1000;
  io::write_npy(folder_.path("a.npy"), io::to_array(values));
  const auto some = convert("a.npy", "b/", {}, {.first = 0, .frames = 3});
  EXPECT_EQ(frames(*some).max().item<double>(), 255);
  const ConvertOptions how{.first = 0, .frames = 3};
  EXPECT_EQ(shown_extremes(some->info(), 0, "b/", how), std::nullopt) << "bytes are shown as they are";
  const auto shown = shown_extremes(open_recording(folder_.path("a.npy"))->info(), 0, "b.gif", how);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->high, 10);
}

TEST_F(Conversions, WhatCannotBeDoneIsSaid) {
  write_fields(folder_.path("a.nc"), {.hours = hours_from(0, 5)});
  expect_error([&] { convert("a.nc", "b.txt"); }, {"ends with .npy, .npz, .h5, .tif, .nc", "b.txt"});
  expect_error([&] { convert("a.nc", "b.npy", {}, {.first = 2, .frames = 4}); }, {"has 5 frames, 4 from 2 on"});
  EXPECT_FALSE(std::filesystem::exists(folder_.path("b.npy")));
}

}  // namespace
}  // namespace convssm::data
