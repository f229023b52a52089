// The caching allocator: blocks come back, foreign memory is left alone, counts add up, threads do not collide.
#include "convssm/ops/allocator.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <thread>

#include "convssm/base/error.h"
#include "convssm/base/poison.h"

namespace convssm::ops {
namespace {

constexpr int64_t kLarge = 1 << 20;  // float32 values: 4 MiB

class AllocatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    install_caching_allocator();
    release_cached_memory();
  }
};

TEST_F(AllocatorTest, AFreedBlockServesTheNextTensorOfItsSize) {
  const size_t before = allocator_statistics().used;
  const void* first = nullptr;
  {
    const at::Tensor x = at::empty({kLarge});
    first = x.data_ptr();
    EXPECT_EQ(allocator_statistics().used - before, size_t{4} << 20);
  }
  EXPECT_EQ(allocator_statistics().used, before);
  EXPECT_EQ(allocator_statistics().cached, size_t{4} << 20);
  EXPECT_EQ(at::empty({kLarge - 1000}).data_ptr(), first);
  EXPECT_NE(at::empty({4 * kLarge}).data_ptr(), first);
}

TEST_F(AllocatorTest, BlocksAreAlignedToHugePages) {
  const at::Tensor x = at::empty({kLarge});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data_ptr()) % (2 << 20), 0u);
}

TEST_F(AllocatorTest, SmallTensorsAndForeignMemoryAreNotItsBusiness) {
  const AllocatorStatistics before = allocator_statistics();
  { const at::Tensor small = at::ones({100}); }
  { const c10::DataPtr foreign = c10::GetDefaultCPUAllocator()->allocate(8 << 20); }
  EXPECT_EQ(allocator_statistics().used, before.used);
  EXPECT_EQ(allocator_statistics().cached, before.cached);
  void* raw = c10::GetCPUAllocator()->raw_allocate(8 << 20);  // as oneDNN asks for memory
  EXPECT_EQ(allocator_statistics().used - before.used, size_t{8} << 20);
  c10::GetCPUAllocator()->raw_deallocate(raw);
  EXPECT_EQ(allocator_statistics().used, before.used);
}

TEST_F(AllocatorTest, ReleaseGivesBackAndThePeakIsKept) {
  reset_allocator_peak();
  const size_t before = allocator_statistics().used;
  { const at::Tensor x = at::empty({kLarge}), y = at::empty({kLarge}); }
  EXPECT_EQ(allocator_statistics().peak_used - before, size_t{8} << 20);
  release_cached_memory();
  EXPECT_EQ(allocator_statistics().cached, 0u);
  reset_allocator_peak();
  EXPECT_EQ(allocator_statistics().peak_used, before);
}

#ifdef CONVSSM_POISONS_MEMORY
// A kept block is not freed, and a block is larger than its tensor: only marks tell AddressSanitizer what may be touched.
TEST_F(AllocatorTest, KeptBlocksAndTheirEndsMayNotBeTouched) {
  float* data = nullptr;
  {
    const at::Tensor x = at::ones({kLarge + 3});
    data = x.data_ptr<float>();
    EXPECT_EQ(data[kLarge + 2], 1);
    EXPECT_DEATH(data[kLarge + 3] = 1, "use-after-poison");
  }
  EXPECT_DEATH(data[0] = 1, "use-after-poison");
  const at::Tensor smaller = at::ones({kLarge + 1});
  ASSERT_EQ(smaller.data_ptr<float>(), data);
  EXPECT_DEATH(data[kLarge + 1] = 1, "use-after-poison");
}
#endif

TEST_F(AllocatorTest, AThreadCanBeLimited) {
  {
    const AllocationLimit limit(uint64_t{8} << 20);
    EXPECT_NO_THROW(at::empty({1 << 20}));
    try {
      at::empty({2 << 20});
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("8.0 MiB"), std::string::npos) << error.what();
    }
    std::thread([] { EXPECT_NO_THROW(at::empty({4 << 20})); }).join();
    const AllocationLimit inner(uint64_t{1} << 40);  // not more than what the outer one has left
    EXPECT_THROW(at::empty({2 << 20}), Error);
  }
  EXPECT_NO_THROW(at::empty({4 << 20}));
}

TEST_F(AllocatorTest, ThreadsDoNotShareABlock) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong, t] {
      for (int i = 0; i < 50; ++i) {
        const at::Tensor x = at::full({kLarge / 2}, static_cast<float>(t));
        if (x.ne(static_cast<float>(t)).any().item<bool>()) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace convssm::ops
