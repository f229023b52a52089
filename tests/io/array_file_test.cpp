// Parts of arrays equal the same parts of the whole, however the file stores them.
#include "convssm/io/array_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../base/scratch_folder.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

void expect_parts(const ArrayFile& file, const Array& whole) {
  EXPECT_EQ(file.info().shape, whole.shape());
  EXPECT_EQ(file.info().dtype, whole.dtype());
  const size_t size = dtype_size(whole.dtype());
  const uint64_t count = whole.element_count();
  EXPECT_TRUE(std::ranges::equal(file.read().bytes(), whole.bytes()));
  for (uint64_t first = 0; first <= count; ++first) {
    for (uint64_t n = 0; first + n <= count; n += 3) {
      const Array part = file.read(first, n);
      ASSERT_EQ(part.shape(), std::vector<int64_t>{static_cast<int64_t>(n)});
      ASSERT_TRUE(std::ranges::equal(part.bytes(), whole.bytes().subspan(first * size, n * size))) << first << " " << n;
    }
  }
}

TEST(ArrayFile, PartsOfNpyFilesOfAllOrders) {
  for (const char* name : {"little_f4.npy", "big_f8.npy", "big_c16.npy", "little_b1.npy", "fortran_f4.npy",
                           "fortran_big_c16.npy", "version_3.npy", "scalar.npy", "empty.npy"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(array_names(data_path(name)), std::vector<std::string>{""});
    expect_parts(ArrayFile(data_path(name), ""), read_npy(data_path(name)));
  }
  EXPECT_TRUE(ArrayFile(data_path("fortran_f4.npy"), "").whole_only());
  EXPECT_FALSE(ArrayFile(data_path("big_f8.npy"), "").whole_only());
}

TEST(ArrayFile, PartsOfNpzFiles) {
  ScratchFolder folder;
  const std::vector<NamedArray> arrays{{"a", make_array<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6})},
                                       {"data", make_array<float>({5}, {1, 2, 3, 4, 5})}};
  for (const bool compress : {false, true}) {
    const std::string path = folder.path(compress ? "c.npz" : "s.npz");
    write_npz(path, arrays, compress);
    EXPECT_EQ(array_names(path), (std::vector<std::string>{"a", "data"}));
    for (const auto& [name, array] : arrays) expect_parts(ArrayFile(path, name), array);
    EXPECT_EQ(ArrayFile(path, "a").whole_only(), compress);
    expect_error(ErrorKind::data, "dat", [&] { ArrayFile(path, "dat"); });
  }
  const NpzFile sample(data_path("stored.npz"));
  for (const auto& name : sample.names()) {
    const Array whole = sample.read(name);
    if (whole.element_count() < 100) expect_parts(ArrayFile(data_path("stored.npz"), name), whole);
  }
}

TEST(ArrayFile, WrongUseIsNamed) {
  const ArrayFile file(data_path("vector.npy"), "");
  const uint64_t count = read_npy(data_path("vector.npy")).element_count();
  expect_error(ErrorKind::usage, "elements", [&] { file.read(count, 1); });
  expect_error(ErrorKind::usage, "elements", [&] { file.read(1, UINT64_MAX); });
  expect_error(ErrorKind::data, "video", [&] { ArrayFile(data_path("vector.npy"), "video"); });
  expect_error(ErrorKind::io, "/nonexistent.npy", [&] { ArrayFile("/nonexistent.npy", ""); });
  ScratchFolder folder;
  folder.write("cut.npy", read_text(data_path("little_f4.npy")).substr(0, 130));
  EXPECT_THROW(ArrayFile(folder.path("cut.npy"), ""), FormatError);
}

}  // namespace
}  // namespace convssm::io
