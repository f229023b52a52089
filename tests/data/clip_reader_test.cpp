// Clips of any file, one after the other: layouts, types, ranges, folders, and what is refused.
#include "convssm/data/clip_reader.h"

#include <gtest/gtest.h>

#include "convssm/io/gif.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/png.h"
#include "convssm/io/tensor.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

// N clips [N,T,H,W,C] of bytes.
at::Tensor clips(at::IntArrayRef shape) {
  at::manual_seed(4);
  return at::randint(0, 256, shape, at::kByte);
}

void save(const ScratchFolder& scratch, const std::string& name, const at::Tensor& x) {
  io::write_npy(scratch.path(name), io::to_array(x));
}

TEST(ClipReader, GivesTheClipsInOrder) {
  const ScratchFolder scratch;
  const at::Tensor x = clips({3, 5, 8, 6, 2});
  const std::vector<io::NamedArray> arrays = {{"real", io::to_array(x)}, {"fake", io::to_array(255 - x)}};
  for (const bool compress : {false, true}) {
    io::write_npz(scratch.path("a.npz"), arrays, compress);
    ClipReader reader(scratch.path("a.npz"), {.key = "fake"});
    EXPECT_EQ(reader.clips(), 3);
    EXPECT_EQ(reader.shape().frames, 5);
    EXPECT_TRUE(reader.bytes());
    for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(reader.next().equal((255 - x[i]).permute({0, 3, 1, 2})));
  }
  expect_error([&] { ClipReader(scratch.path("a.npz"), {}); }, {"a.npz", "'real'", "'fake'", "key"});
}

TEST(ClipReader, UnderstandsLayoutsAndRanges) {
  const ScratchFolder scratch;
  const at::Tensor x = clips({4, 9, 7});
  save(scratch, "thw.npy", x);
  EXPECT_TRUE(ClipReader(scratch.path("thw.npy"), {}).next().equal(x.unsqueeze(1)));
  save(scratch, "f01.npy", x.to(at::kFloat) / 255);
  ClipReader floats(scratch.path("f01.npy"), {});
  EXPECT_FALSE(floats.bytes());
  EXPECT_LT(testing::distance(floats.next(), x.unsqueeze(1).to(at::kFloat) / 255), 1e-7);
  save(scratch, "f11.npy", x.to(at::kDouble) / 127.5 - 1);
  expect_error([&] { ClipReader(scratch.path("f11.npy"), {}).next(); }, {"f11.npy", "0 to 1", "--range"});
  ClipReader signed_floats(scratch.path("f11.npy"), {.low = -1, .high = 1});
  EXPECT_LT(testing::distance(signed_floats.next(), x.unsqueeze(1).to(at::kFloat) / 255), 1e-6);
  save(scratch, "f64.npy", x.to(at::kDouble));
  const auto [least, most] = at::aminmax(x);
  expect_error([&] { ClipReader(scratch.path("f64.npy"), {.low = -1, .high = 1}).next(); },
               {fmt::format("found {} to {}", least.item<int>(), most.item<int>())});
  expect_error([&] { ClipReader(scratch.path("thw.npy"), {.layout = "TNHW"}); }, {"TNHW"});
  expect_error([&] { ClipReader(scratch.path("thw.npy"), {.key = "fake"}); }, {"thw.npy", "no array 'fake'", ".npz"});
  save(scratch, "whole.npy", x.to(at::kLong));
  expect_error([&] { ClipReader(scratch.path("whole.npy"), {}).next(); }, {"whole.npy", "i64", "--range"});
  save(scratch, "nan.npy", at::full({2, 4, 4}, NAN));
  expect_error([&] { ClipReader(scratch.path("nan.npy"), {}).next(); }, {"nan.npy"});
}

TEST(ClipReader, FoldersAndPictures) {
  const ScratchFolder scratch;
  const at::Tensor x = clips({2, 8, 8, 3});
  for (int64_t i = 0; i < 2; ++i) {
    io::Image image{8, 8, 3, {}};
    const at::Tensor pixels = x[i].contiguous();
    image.pixels.assign(pixels.data_ptr<uint8_t>(), pixels.data_ptr<uint8_t>() + pixels.numel());
    io::write_png(scratch.path(i == 0 ? "a.png" : "b.PNG"), image);
  }
  scratch.write("notes.txt", "left out");
  ClipReader reader(scratch.path(), {});
  EXPECT_EQ(reader.files(), (std::vector<std::string>{"a.png", "b.PNG"}));
  for (int64_t i = 0; i < 2; ++i) EXPECT_TRUE(reader.next().equal(x[i].permute({2, 0, 1}).unsqueeze(0)));

  save(scratch, "c.npy", clips({3, 8, 8, 3}));
  ClipReader mixed(scratch.path(), {});
  mixed.next(), mixed.next();
  expect_error([&] { mixed.next(); }, {"one size", "1 frames of 8x8", "c.npy", "3 of 8x8"});
  expect_error([] { ClipReader("/nonexistent", {}); }, {"/nonexistent"});
  const ScratchFolder empty;
  expect_error([&] { ClipReader(empty.path(), {}); }, {"holds no recordings", ".npz"});
}

}  // namespace
}  // namespace convssm::data
