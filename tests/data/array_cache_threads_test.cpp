// The cache of arrays, compressed or stored, under several threads at once: right values while entries come and go, and an error for
// everyone who waits for an array that cannot be read. ThreadSanitizer looks on (`make tsan`).
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "convssm/base/error.h"
#include "convssm/base/random.h"
#include "convssm/data/array_cache.h"
#include "convssm/io/npz.h"
#include "tests/base/scratch_folder.h"

namespace convssm::data {
namespace {

constexpr int kFiles = 4;
constexpr uint64_t kBytes = 20000;

// kFiles arrays; value i of file f is i + 7 f.
void write_files(const ScratchFolder& folder, bool compressed) {
  for (int f = 0; f < kFiles; ++f) {
    std::vector<uint8_t> values(kBytes);
    for (size_t i = 0; i < kBytes; ++i) values[i] = static_cast<uint8_t>(i + 7 * static_cast<size_t>(f));
    const std::vector<io::NamedArray> arrays{{"a", io::make_array({static_cast<int64_t>(kBytes)}, values)}};
    io::write_npz(folder.path(std::to_string(f)), arrays, compressed);
  }
}

template <class Work>
void on_threads(const Work& work) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) threads.emplace_back([&work, t] { work(t); });
  for (std::thread& thread : threads) thread.join();
}

TEST(ArrayCacheThreads, ReadRightValuesWhileArraysComeAndGo) {
  ScratchFolder folder;
  for (const uint64_t limit : {uint64_t{0}, 2 * kBytes, 10 * kBytes, 11 * kBytes}) {
    write_files(folder, limit != 11 * kBytes);
    ArrayCache cache(limit);
    std::atomic<int> wrong = 0;
    on_threads([&](uint64_t t) {
      Stream stream(t, "reads");
      for (int i = 0; i < 40; ++i) {
        const uint64_t file = stream.below(kFiles), first = stream.below(kBytes - 10);
        const io::Array part = cache.read(folder.path(std::to_string(file)), "a", first, 10);
        for (uint64_t k = 0; k < 10; ++k) {
          if (part.values<uint8_t>()[k] != static_cast<uint8_t>(first + k + 7 * file)) ++wrong;
        }
        if (cache.bytes() > std::max(limit, kBytes)) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0) << limit;
  }
}

TEST(ArrayCacheThreads, EveryReaderOfABrokenArrayGetsTheError) {
  ScratchFolder folder;
  const std::string path = folder.path("0");
  for (const bool compressed : {false, true}) {
    write_files(folder, compressed);
    {  // a byte of the data, which only its checksum tells
      std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
      bytes.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path) / 2));
      bytes.put('\xff').put('\xfe');
    }
    ArrayCache cache(10 * kBytes);
    std::atomic<int> errors = 0;
    on_threads([&](uint64_t) {
      try {
        cache.read(path, "a", 0, 1);
      } catch (const std::exception&) {
        ++errors;
      }
    });
    EXPECT_EQ(errors, 4) << compressed;
  }
}

}  // namespace
}  // namespace convssm::data
