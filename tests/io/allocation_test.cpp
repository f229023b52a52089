// Replaces operator new of the test program to see how much the readers ask for.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "malformed.h"

namespace {

std::atomic<size_t> largest{0};

void note(size_t size) {
  size_t before = largest.load();
  while (before < size && !largest.compare_exchange_weak(before, size)) {
  }
}

}  // namespace

// Not inlined: g++ would warn of new beside free() where it sees only one of them.
[[gnu::noinline]] void* operator new(size_t size) {
  note(size);
  if (void* block = std::malloc(size > 0 ? size : 1)) return block;
  throw std::bad_alloc();
}

[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  note(size);
  const size_t unit = static_cast<size_t>(alignment);
  const size_t rounded = (size / unit + 1) * unit;
  if (void* block = std::aligned_alloc(unit, rounded > size ? rounded : size)) return block;
  throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t, std::align_val_t) noexcept { std::free(block); }

namespace convssm::io {

size_t largest_allocation() { return largest; }
void reset_largest_allocation() { largest = 0; }

TEST(Allocation, IsSeen) {
  reset_largest_allocation();
  const Array array(DType::u8, {3 << 20});
  EXPECT_GE(largest_allocation(), 3u << 20);
  reset_largest_allocation();
  const std::vector<char> bytes(5000);
  EXPECT_GE(largest_allocation(), 5000u);
  EXPECT_LT(largest_allocation(), 1u << 20);
}

}  // namespace convssm::io
