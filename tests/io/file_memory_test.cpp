// Small files that describe much: refused before anything is allocated, read when the limit is raised.
#include "convssm/base/file_memory.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "../base/scratch_folder.h"
#include "convssm/io/animation.h"
#include "convssm/io/array_file.h"
#include "convssm/io/array_stream.h"
#include "convssm/io/gif.h"
#include "convssm/io/idx.h"
#include "convssm/io/mp4.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/png.h"
#include "convssm/io/safetensors.h"
#include "convssm/io/video_read.h"
#include "malformed.h"
#include "videos.h"

namespace convssm::io {
namespace {

constexpr uint64_t kSmall = 1 << 20;
constexpr int64_t kSide = 2048;  // of 4 MiB of bytes

class FileMemory : public ::testing::Test {
 protected:
  ~FileMemory() override { set_file_memory_limit(default_file_memory); }

  // Refused below the limit without an allocation above it, and read above it.
  void expect_limited(const std::string& name, const std::function<void()>& read) {
    SCOPED_TRACE(name);
    set_file_memory_limit(kSmall);
    reset_largest_allocation();
    expect_error(ErrorKind::data, "--file-memory", read);
    EXPECT_LT(largest_allocation(), 2 * kSmall);
    set_file_memory_limit(default_file_memory);
    EXPECT_NO_THROW(read());
  }

  std::string path(const std::string& name) const { return scratch_.path(name); }

  ScratchFolder scratch_;
};

Array zeros(std::vector<int64_t> shape) {
  Array array(DType::u8, std::move(shape));
  std::ranges::fill(array.bytes(), std::byte{0});
  return array;
}

TEST_F(FileMemory, OfArrays) {
  const std::vector<NamedArray> arrays{{"a", zeros({4, kSide, kSide / 4})}};
  write_npz(path("small.npz"), arrays, true);
  write_npz(path("stored.npz"), arrays);
  write_npy(path("a.npy"), arrays[0].array);
  write_safetensors(path("a.safetensors"), arrays);
  expect_limited("npz", [&] { NpzFile(path("small.npz")).read("a"); });
  expect_limited("npz, whole", [&] { ArrayFile(path("small.npz"), "a").read(0, 1); });
  expect_limited("npz, chunk", [&] { ArrayFile(path("stored.npz"), "a").read(0, 2 * kSmall); });
  expect_limited("npz, in order", [&] { ArrayStream(path("small.npz"), "a").next(2 * kSmall); });
  expect_limited("npy", [&] { read_npy(path("a.npy")); });
  expect_limited("npy, rows", [&] { read_npy_rows(path("a.npy"), 1, 2); });
  expect_limited("safetensors", [&] { SafetensorsFile(path("a.safetensors")).read("a"); });
  set_file_memory_limit(kSmall);  // chunks of a large file are small
  EXPECT_EQ(ArrayFile(path("stored.npz"), "a").read(0, kSmall).element_count(), kSmall);
  EXPECT_EQ(ArrayStream(path("small.npz"), "a").next(kSmall).element_count(), kSmall);
}

TEST_F(FileMemory, OfCompressedIdx) {
  std::string idx("\0\0\x08\x03\0\0\0\x04\0\0\x08\0\0\0\x02\0", 16);
  idx.append(size_t{4} * kSide * kSide / 4, '\0');
  const std::string name = path("digits.idx.gz");
  gzFile file = gzopen(name.c_str(), "wb9");
  ASSERT_EQ(gzwrite(file, idx.data(), static_cast<unsigned>(idx.size())), static_cast<int>(idx.size()));
  gzclose(file);
  expect_limited("idx.gz", [&] { read_idx(name); });
}

TEST_F(FileMemory, OfPictures) {
  write_png(path("a.png"), {kSide, kSide, 1, std::vector<uint8_t>(kSide * kSide)});
  expect_limited("png", [&] { read_png(path("a.png")); });
  const VideoFormat format = of_size(256, 256, 1);
  GifWriter gif(path("a.gif"), format);
  Mp4Writer mp4(path("a.mp4"), format);
  for (int64_t t = 0; t < 64; ++t) {
    const Frame frame = smooth_frame(256, 256, 1, 0);
    gif.write(frame);
    mp4.write(frame);
  }
  gif.close();
  mp4.close();
  expect_limited("gif", [&] { read_gif(path("a.gif")); });
  GifWriter one(path("one.gif"), of_size(1000, 1000, 1));  // below the limit, but not with what it is drawn on
  one.write(smooth_frame(1000, 1000, 1, 0));
  one.close();
  expect_limited("gif of one frame", [&] { read_gif(path("one.gif")); });
  expect_limited("mp4", [&] { read_video(path("a.mp4")); });
}

}  // namespace
}  // namespace convssm::io
