// Pixels that were not measured in files that do not say so: NaN and numbers that stand for them.
#include "convssm/data/masked_recording.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/data/inspect.h"
#include "convssm/data/pixels.h"
#include "folder_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

class MaskedRecordings : public FolderTest {
 protected:
  json with(const json& more) const {
    json options = all_train;
    options.update({{"low", 0}, {"high", 255}});
    options.update(more);
    return options;
  }
};

TEST_F(MaskedRecordings, NanIsAMissingPixelWhereItIsSaid) {
  at::Tensor values = at::rand({5, 6, 7});
  values[3][1][2] = NAN;
  for (const char* name : {"a.npy", "a.npz"}) {
    std::filesystem::remove(folder.path("a.npy"));
    name == std::string("a.npy") ? npy(name, values) : npz(name, {{"data", values}}, true);
    const auto dataset = open(with({{"high", 1}, {"missing", "mask"}}));
    dataset->check();
    const Clips clip = dataset->part(Split::train, 0, 0, 5);
    ASSERT_TRUE(clip.valid.defined());
    EXPECT_EQ(clip.valid.logical_not().sum().item<int64_t>(), 1);
    EXPECT_FALSE(clip.valid[0][3][0][1][2].item<bool>());
    EXPECT_EQ(clip.video[0][3][0][1][2].item<float>(), kFiller);
    EXPECT_NEAR(clip.video[0][3][0][1][3].item<float>(), 2 * values[3][1][3].item<float>() - 1, 1e-6);
    expect_error([&] { open(with({{"high", 1}}))->check(); }, {"nan", "data.missing=mask"});
  }
}

TEST_F(MaskedRecordings, ANumberStandsForMissingPixels) {
  const at::Tensor values = numbers({4, 3, 8, 8});  // TCHW
  for (const bool last : {false, true}) {
    npy("a.npy", last ? values.permute({0, 2, 3, 1}).contiguous() : values);
    const auto dataset = open(with({{"missing_value", 255}}));
    const Clips clip = dataset->part(Split::train, 0, 0, 4);
    const at::Tensor missing = values.eq(255).unsqueeze(0);
    ASSERT_GT(missing.sum().item<int64_t>(), 0);
    EXPECT_TRUE(clip.valid.equal(missing.logical_not()));
    EXPECT_TRUE(clip.video.masked_select(clip.valid).allclose(expected(values).unsqueeze(0).masked_select(clip.valid)));
    const Inspection found = inspect({{"path", folder.path()}, {"missing_value", 255}});
    EXPECT_EQ(found.problem, "");
    EXPECT_EQ(found.values.nan, static_cast<uint64_t>(missing.sum().item<int64_t>()));
    EXPECT_LT(found.values.high, 255);
  }
}

TEST_F(MaskedRecordings, SmallerFramesMissWhatTheyCover) {
  at::Tensor values = at::full({3, 8, 8}, 10, at::kByte);
  values[0][0][0] = 255;
  npy("a.npy", values);
  const Clips clip = open(with({{"missing_value", 255}, {"size", 4}}))->part(Split::train, 0, 0, 3);
  EXPECT_EQ(clip.valid.logical_not().sum().item<int64_t>(), 1);
  EXPECT_FALSE(clip.valid[0][0][0][0][0].item<bool>());
  EXPECT_NEAR(clip.video[0][0][0][0][1].item<float>(), 20.0 / 255 - 1, 1e-6);
}

TEST_F(MaskedRecordings, NumbersAsTheyAreRounded) {
  at::Tensor values = at::rand({3, 6, 7});
  values[1][2][3] = 1e20;
  npy("a.npy", values);
  const Clips clip = open(with({{"high", 1}, {"missing_value", 1e20}}))->part(Split::train, 0, 0, 3);
  EXPECT_EQ(clip.valid.logical_not().sum().item<int64_t>(), 1);
}

TEST_F(MaskedRecordings, WhatCannotBeMissing) {
  npy("a.npy", numbers({3, 8, 8}));
  expect_error([&] { open(with({{"missing", "mask"}})); }, {"a.npy", "holds u8", "data.missing_value=255"});
  expect_error([&] { open(with({{"missing", "fail"}, {"missing_value", 1}})); }, {"leave one of them out"});
  for (const auto& [key, value] :
       {std::pair<const char*, json>{"variables", {"t2m"}}, {"select", {{"number", 0}}}, {"forcings", {"hour"}}}) {
    expect_error([&] { open(with({{key, value}})); }, {std::string("data.") + key, "grid files", "a.npy"});
  }
}

}  // namespace
}  // namespace convssm::data
