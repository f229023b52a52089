// Boxes of arrays in files of every kind against the same cut from the whole, element by element.
#include "convssm/io/array_box.h"

#include <gtest/gtest.h>

#include <random>

#include "../base/scratch_folder.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/array_file.h"
#include "convssm/io/hdf5.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

using Sizes = std::vector<int64_t>;

// The element of the box at flat place `at`, found by division.
uint64_t element_at(uint64_t at, const Sizes& shape, const Sizes& first, const Sizes& count) {
  uint64_t element = 0, step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    const auto size = static_cast<uint64_t>(count[i]);
    element += (static_cast<uint64_t>(first[i]) + at % size) * step;
    at /= size, step *= static_cast<uint64_t>(shape[i]);
  }
  return element;
}

void expect_box(const Array& box, const Array& whole, const Sizes& first, const Sizes& count) {
  ASSERT_EQ(box.shape(), count);
  ASSERT_EQ(box.dtype(), whole.dtype());
  const size_t item = dtype_size(whole.dtype());
  for (uint64_t at = 0; at < box.element_count(); ++at) {
    const auto want = whole.bytes().subspan(element_at(at, whole.shape(), first, count) * item, item);
    ASSERT_TRUE(std::ranges::equal(box.bytes().subspan(at * item, item), want)) << at << " of " << shape_text(count);
  }
}

void expect_boxes(const std::string& path, const std::string& name) {
  SCOPED_TRACE(path + " " + name);
  const ArrayFile file(path, name);
  const Array whole = file.read();
  const Sizes& shape = whole.shape();
  std::mt19937 random(3);
  for (int k = 0; k < 60; ++k) {
    Sizes first, count;
    for (const int64_t size : shape) {
      first.push_back(static_cast<int64_t>(random()) % size);
      count.push_back(1 + static_cast<int64_t>(random()) % (size - first.back()));
    }
    expect_box(file.read_box(first, count), whole, first, count);
    expect_box(box_of(whole, first, count, path), whole, first, count);
  }
  const Sizes zeros(shape.size(), 0);
  expect_box(file.read_box(zeros, shape), whole, zeros, shape);
  Sizes outside = shape;
  ++outside.back();
  expect_error(ErrorKind::usage, "asked for", [&] { file.read_box(zeros, outside); });
  expect_error(ErrorKind::usage, "asked for", [&] { file.read_box(shape, Sizes(shape.size(), 1)); });
  expect_error(ErrorKind::usage, "asked for", [&] { file.read_box(zeros, zeros); });
  expect_error(ErrorKind::usage, "asked for", [&] { file.read_box({}, {}); });
}

Array counted(DType dtype, const Sizes& shape) {
  Array array(dtype, shape);
  for (size_t i = 0; i < array.byte_count(); ++i) array.bytes()[i] = static_cast<std::byte>(i * 7 + i / 251);
  normalize_bools(array);
  return array;
}

TEST(ArrayBox, OfEveryKindOfFile) {
  const ScratchFolder folder;
  for (const DType dtype : {DType::bool8, DType::u8, DType::i16, DType::f32, DType::f64, DType::c128}) {
    const Array array = counted(dtype, {4, 6, 5, 7});
    write_npy(folder.path("a.npy"), array);
    expect_boxes(folder.path("a.npy"), "");
  }
  const std::vector<NamedArray> arrays{{"x", counted(DType::u16, {9, 3, 8})}, {"y", counted(DType::u8, {50})}};
  for (const bool compress : {false, true}) {
    write_npz(folder.path("a.npz"), arrays, compress);
    expect_boxes(folder.path("a.npz"), "x");
    expect_boxes(folder.path("a.npz"), "y");
  }
  for (const char* name : {"big_f4.npy", "fortran_f4.npy"}) {
    if (read_npy_info(data_path(name)).shape.empty()) continue;
    expect_boxes(data_path(name), "");
  }
  for (const char* name : {"packed", "summed"}) expect_boxes(data_path("types.h5"), name);
}

// Where much lies between the elements of a box it is read in parts, otherwise at once.
TEST(ArrayBox, IsReadInTheCheapestPieces) {
  const auto plan = [](const Sizes& shape, const Sizes& count) { return plan_box(shape, count, 1); };
  const BoxPieces whole = plan({20, 10, 64, 64}, {20, 10, 64, 64});
  EXPECT_EQ(whole.pieces, 1u);
  EXPECT_EQ(whole.elements, 20u * 10 * 64 * 64);
  const BoxPieces of_one_clip = plan({20, 10000, 64, 64}, {20, 1, 64, 64});  // TNHW
  EXPECT_EQ(of_one_clip.pieces, 20u);
  EXPECT_EQ(of_one_clip.elements, 64u * 64);
  const BoxPieces frames_last = plan({5, 64, 64, 49}, {1, 64, 64, 10});  // NHWT
  EXPECT_EQ(frames_last.pieces, 1u);
  EXPECT_EQ(frames_last.elements, 64u * 64 * 49 - 39);
  EXPECT_EQ(plan({1 << 20, 1 << 20}, {2, 1}).pieces, 2u);
  EXPECT_EQ(plan({}, {}).elements, 1u);
  EXPECT_EQ(plan({1 << 30, 1 << 30, 1 << 2}, {1 << 30, 1, 1}).pieces, uint64_t{1} << 30) << "no overflow";
}

TEST(ArrayBox, TakesNoMoreMemoryThanAllowed) {
  const ScratchFolder folder;
  write_npy(folder.path("a.npy"), counted(DType::u8, {100, 100}));
  const ArrayFile file(folder.path("a.npy"), "");
  const uint64_t before = file_memory_limit();
  set_file_memory_limit(5000);
  EXPECT_NO_THROW(file.read_box(Sizes{0, 0}, Sizes{20, 100}));
  expect_error(ErrorKind::data, "--file-memory", [&] { file.read_box(Sizes{0, 0}, Sizes{30, 100}); });
  set_file_memory_limit(before);
}

TEST(ArrayBox, FilesThatEndEarly) {
  const ScratchFolder folder;
  write_npy(folder.path("a.npy"), counted(DType::u8, {10, 10}));
  const ArrayFile file(folder.path("a.npy"), "");
  std::filesystem::resize_file(folder.path("a.npy"), std::filesystem::file_size(folder.path("a.npy")) - 5);
  EXPECT_THROW(file.read_box(Sizes{8, 0}, Sizes{2, 10}), Error);
}

}  // namespace
}  // namespace convssm::io
