// The cache of compressed arrays: right values within its limit of memory.
#include "convssm/data/array_cache.h"

#include <gtest/gtest.h>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "convssm/io/npz.h"

namespace convssm::data {
namespace {

TEST(ArrayCache, KeepsTheMostRecentUpToItsLimit) {
  ScratchFolder folder;
  for (int i = 0; i < 4; ++i) {
    std::vector<uint8_t> values(100, static_cast<uint8_t>(i));
    const std::vector<io::NamedArray> arrays{{"a", io::make_array({100}, values)}};
    io::write_npz(folder.path(std::to_string(i)), arrays, i != 3);
  }
  ArrayCache cache(250);
  const auto first = [&](int i) { return cache.read(folder.path(std::to_string(i)), "a", 7, 3).values<uint8_t>()[0]; };
  for (const int i : {0, 1, 2, 0, 3, 1, 2}) EXPECT_EQ(first(i), i);
  EXPECT_EQ(cache.bytes(), 200u);
  std::filesystem::remove(folder.path("2"));
  convssm::testing::expect_error([&] { first(2); }, {"/2"});
}

TEST(ArrayCache, AnArrayBeyondTheLimitIsKeptAlone) {
  ScratchFolder folder;
  const std::vector<io::NamedArray> arrays{{"a", io::make_array<uint8_t>({4}, {1, 2, 3, 4})}};
  io::write_npz(folder.path("x"), arrays, true);
  io::write_npz(folder.path("y"), arrays, true);
  ArrayCache cache(1);
  EXPECT_EQ(cache.read(folder.path("x"), "a", 1, 2).values<uint8_t>()[1], 3);
  EXPECT_EQ(cache.read(folder.path("y"), "a", 3, 1).values<uint8_t>()[0], 4);
  EXPECT_EQ(cache.bytes(), 4u);
}

TEST(ArrayCache, AFileThatBecameShorterIsRefused) {
  ScratchFolder folder;
  const std::vector<io::NamedArray> shorter{{"a", io::make_array<uint8_t>({4}, {1, 2, 3, 4})}};
  io::write_npz(folder.path("x"), shorter, true);
  ArrayCache cache(100);
  const auto refused = [&](uint64_t first, uint64_t count) {
    convssm::testing::expect_error([&] { cache.read(folder.path("x"), "a", first, count); },
                                   {"/x", "has changed since it was opened"});
  };
  refused(3, 2);
  refused(1000, 1);
  refused(2, UINT64_MAX);
  EXPECT_EQ(cache.read(folder.path("x"), "a", 2, 2).values<uint8_t>()[1], 4);
}

TEST(ArrayCache, AFailedLoadIsTriedAgain) {
  ArrayCache cache(100);
  const auto broken = []() -> io::Array { fail(ErrorKind::io, "the disk is away"); };
  convssm::testing::expect_error([&] { cache.whole("x", "a", 4, broken); }, {"the disk is away"});
  EXPECT_EQ(cache.bytes(), 0u);
  const auto good = [] { return io::make_array<uint8_t>({4}, {1, 2, 3, 4}); };
  EXPECT_EQ(cache.whole("x", "a", 4, good).values<uint8_t>()[3], 4);
}

// A chunk alone cannot be compared with the checksum of the whole.
TEST(ArrayCache, AChangedByteOfAStoredArrayIsFound) {
  ScratchFolder folder;
  std::vector<uint8_t> values(3'000'000, 7);
  const std::vector<io::NamedArray> arrays{{"a", io::make_array({3'000'000}, values)}};
  io::write_npz(folder.path("x.npz"), arrays);
  ArrayCache good(0);
  EXPECT_EQ(good.read(folder.path("x.npz"), "a", 5, 1).values<uint8_t>()[0], 7);
  std::string bytes = read_text(folder.path("x.npz"));
  bytes[2'000'000] ^= 1;
  folder.write("x.npz", bytes);
  ArrayCache cache(0);
  for (int i = 0; i < 2; ++i) {
    convssm::testing::expect_error([&] { cache.read(folder.path("x.npz"), "a", 5, 1); },
                                   {"x.npz", "checksum", "damaged"});
  }
}

}  // namespace
}  // namespace convssm::data
