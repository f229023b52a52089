#include "convssm/base/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace convssm {
namespace {

constexpr size_t kBlock = 64 << 20;

// A block straight from the kernel, touched page by page.
class Block {
 public:
  Block() : data_(mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    madvise(data_, kBlock, MADV_NOHUGEPAGE);
    std::memset(data_, 1, kBlock);
  }
  ~Block() { munmap(data_, kBlock); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

 private:
  void* data_;
};

class MemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (access("/proc/self/status", R_OK) != 0) GTEST_SKIP() << "no /proc here";
  }
};

TEST_F(MemoryTest, RssAndFaultsSeeABlock) {
  const uint64_t rss = current_rss(), faults = minor_faults();
  const Block block;
  EXPECT_GT(current_rss(), rss + kBlock * 9 / 10);
  EXPECT_GE(minor_faults(), faults + kBlock / page_size() * 9 / 10);
}

TEST_F(MemoryTest, MachineHasPlausibleNumbers) {
  EXPECT_GE(page_size(), 4096u);
  EXPECT_GT(total_memory(), current_rss());
  EXPECT_GT(available_memory(), 0u);
  EXPECT_LE(available_memory(), total_memory());
}

TEST(Memory, BracketedWord) {
  EXPECT_EQ(bracketed_word("always [madvise] never"), "madvise");
  EXPECT_EQ(bracketed_word("[always] madvise never\n"), "always");
  EXPECT_EQ(bracketed_word(""), "unknown");
  EXPECT_EQ(bracketed_word("]["), "unknown");
}

TEST(Memory, FormatBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16.0 EiB");
}

TEST(Memory, SizesAreNumbersWithAUnit) {
  EXPECT_EQ(parse_bytes("12GiB"), uint64_t{12} << 30);
  EXPECT_EQ(parse_bytes("0.5 KiB"), 512u);
  EXPECT_EQ(parse_bytes("800MB"), 800'000'000u);
  for (const char* text : {"", "12", "GiB", "-1GiB", "0MB", "1 GiB more", "1e30TB", "nanGB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace convssm
