// What is written as HDF5 is read back by the reader that knows other programs' files.
#include "convssm/io/hdf5_write.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "../base/scratch_folder.h"
#include "convssm/io/hdf5.h"
#include "malformed.h"

namespace convssm::io {
namespace {

Array counted(std::vector<int64_t> shape, int32_t first) {
  Array array(DType::i32, std::move(shape));
  std::iota(array.values<int32_t>().begin(), array.values<int32_t>().end(), first);
  return array;
}

TEST(Hdf5Write, ArraysComeBack) {
  const ScratchFolder folder;
  Hdf5Writer out(folder.path("a.h5"));
  out.begin("times", DType::f64, {3});
  out.write(make_array<double>({3}, {1.0, 2.5, 4.0}));
  out.begin("video", DType::i32, {9, 2, 3});
  out.write(counted({4, 2, 3}, 0));
  out.write(counted({1, 2, 3}, 24));
  EXPECT_FALSE(std::filesystem::exists(folder.path("a.h5")));
  out.close();
  EXPECT_EQ(hdf5_names(folder.path("a.h5")), (std::vector<std::string>{"times", "video"}));
  const Hdf5Array video(folder.path("a.h5"), "video");
  EXPECT_EQ(video.info().shape, (std::vector<int64_t>{5, 2, 3})) << "as many rows as came";
  EXPECT_EQ(video.read(29, 1).values<int32_t>()[0], 29);
  EXPECT_EQ(Hdf5Array(folder.path("a.h5"), "times").read(1, 1).values<double>()[0], 2.5);
}

TEST(Hdf5Write, RefusesWhatDoesNotFit) {
  const ScratchFolder folder;
  {
    Hdf5Writer out(folder.path("a.h5"));
    expect_error(ErrorKind::usage, "f32 or f64 expected, got f16", [&] { out.begin("a", DType::f16, {3}); });
    expect_error(ErrorKind::usage, "not be empty", [&] { out.begin("a", DType::f32, {0, 3}); });
    out.begin("a", DType::i32, {2, 3});
    expect_error(ErrorKind::usage, "does not fit behind row 0", [&] { out.write(counted({3, 3}, 0)); });
    expect_error(ErrorKind::usage, "f64 [1, 3] does not fit", [&] {
      out.write(make_array<double>({1, 3}, {1.0, 2.0, 3.0}));
    });
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "without close() there never is a file";
  folder.write("plain", "");
  expect_error(ErrorKind::io, "plain", [&] { Hdf5Writer(folder.path("plain/a.h5")); });
}

}  // namespace
}  // namespace convssm::io
