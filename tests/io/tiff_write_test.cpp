// What is written as TIFF is read back with its numbers.
#include "convssm/io/tiff_write.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "../base/scratch_folder.h"
#include "convssm/io/tiff.h"
#include "malformed.h"

namespace convssm::io {
namespace {

TEST(TiffWrite, PagesComeBack) {
  const ScratchFolder folder;
  for (const int64_t channels : {1, 2, 3, 5}) {
    Array pages(DType::f32, {6, 4, 7, channels});
    std::iota(pages.values<float>().begin(), pages.values<float>().end(), -0.5f);
    TiffWriter out(folder.path("a.tif"), DType::f32, 4, 7, channels);
    out.write(pages);
    out.close();
    const Array read = read_tiff(folder.path("a.tif"));
    EXPECT_EQ(read.shape(), pages.shape());
    EXPECT_TRUE(std::ranges::equal(read.bytes(), pages.bytes())) << channels;
  }
}

TEST(TiffWrite, RefusesWhatDoesNotFit) {
  const ScratchFolder folder;
  expect_error(ErrorKind::usage, "TIFF has no bf16", [&] { TiffWriter(folder.path("a.tif"), DType::bf16, 4, 4, 1); });
  {
    TiffWriter out(folder.path("a.tif"), DType::u8, 4, 4, 1);
    expect_error(ErrorKind::usage, "pages must be u8 [T,4,4,1]", [&] { out.write(Array(DType::u8, {1, 4, 5, 1})); });
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "without close() there never is a file";
}

}  // namespace
}  // namespace convssm::io
