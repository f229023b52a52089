// Arrays read chunk by chunk: the same elements as read at once, whatever the file.
#include "convssm/io/array_stream.h"

#include <gtest/gtest.h>

#include <numeric>

#include "convssm/base/error.h"
#include "convssm/io/array_file.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "tests/base/scratch_folder.h"

namespace convssm::io {
namespace {

const std::string kData = CONVSSM_SOURCE_DIR "/tests/io/data/";

// All elements in chunks of `size` and a rest.
std::vector<std::byte> in_chunks(const std::string& path, const std::string& name, uint64_t size) {
  ArrayStream stream(path, name);
  uint64_t left = 1;
  for (const int64_t n : stream.info().shape) left *= static_cast<uint64_t>(n);
  std::vector<std::byte> all;
  while (left > 0) {
    const Array part = stream.next(std::min(size, left));
    left -= part.element_count();
    all.insert(all.end(), part.bytes().begin(), part.bytes().end());
  }
  EXPECT_THROW(stream.next(1), Error);
  return all;
}

TEST(ArrayStream, PiecesAreTheWhole) {
  for (const char* file : {"little_f4.npy", "big_c16.npy", "big_i4.npy", "fortran_f4.npy", "fortran_big_c16.npy",
                           "stored.npz", "compressed.npz", "streamed.npz", "mixed.npz"}) {
    for (const std::string& name : array_names(kData + file)) {
      const Array whole = ArrayFile(kData + file, name).read();
      const std::vector<std::byte> expected(whole.bytes().begin(), whole.bytes().end());
      for (const uint64_t size : {1, 3, 1000}) EXPECT_EQ(in_chunks(kData + file, name, size), expected) << file;
    }
  }
}

TEST(ArrayStream, ADamagedMemberIsFoundByItsChecksum) {
  const ScratchFolder scratch;
  const std::string path = scratch.path("a.npz");
  std::vector<float> values(5000);
  std::iota(values.begin(), values.end(), 0.0f);
  const std::vector<NamedArray> arrays = {{"x", make_array({5000}, values)}};
  for (const bool compress : {false, true}) {
    write_npz(path, arrays, compress);
    std::string bytes = read_text(path);
    bytes[bytes.size() / 2] ^= 0x10;
    scratch.write("a.npz", bytes);
    EXPECT_THROW(in_chunks(path, "x", 100), FormatError) << compress;
  }
}

}  // namespace
}  // namespace convssm::io
