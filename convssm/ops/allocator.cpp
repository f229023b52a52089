// A map from size class to free blocks; a block serves requests down to four fifths of its size. mmap gives no
// alignment to huge pages, so a block is mapped with a page to spare and its ends are given back. When memory runs
// short the free blocks go first. The default allocator's memory is told from ours by its address, before the table is
// asked.
#include "convssm/ops/allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/memory.h"
#include "convssm/base/poison.h"
#include "convssm/ops/function_allocator.h"

namespace convssm::ops {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLarge = size_t{1} << 20;

// Sizes in steps of an eighth of their power of two, so that blocks fit tensors of nearly the same size again.
size_t size_class(size_t size) {
  const size_t step = std::max(kHugePage, std::bit_floor(size) / 8);
  return (size + step - 1) / step * step;
}

// A block aligned to huge pages, or nullptr.
void* map_block(size_t size) {
  void* raw = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned != begin) munmap(raw, aligned - begin);
  munmap(reinterpret_cast<void*>(aligned + size), begin + kHugePage - aligned);
  madvise(reinterpret_cast<void*>(aligned), size, MADV_HUGEPAGE);  // without huge pages the block works all the same
  return reinterpret_cast<void*>(aligned);
}

class BlockCache {
 public:
  void* take(size_t size) {
    const std::lock_guard lock(mutex_);
    const size_t wanted = size_class(size);
    void* block = reuse(wanted);
    if (block == nullptr) block = map_new(wanted);
    const size_t own = sizes_[block];
    unpoison(block, size);
    poison(static_cast<char*>(block) + size, own - size);
    statistics_.used += own;
    statistics_.peak_used = std::max(statistics_.peak_used, statistics_.used);
    return block;
  }

  // False if the block is not one of ours.
  bool give_back(void* block) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(block);
    if (found == sizes_.end()) return false;
    statistics_.used -= found->second;
    statistics_.cached += found->second;
    free_[found->second].push_back(block);
    poison(block, found->second);
    return true;
  }

  void release() {
    const std::lock_guard lock(mutex_);
    release_locked();
  }

  AllocatorStatistics statistics() {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    statistics_.peak_used = statistics_.used;
  }

 private:
  // A free block of this size or up to a quarter larger.
  void* reuse(size_t size) {
    auto found = free_.lower_bound(size);
    if (found == free_.end() || found->first > size + size / 4) return nullptr;
    void* block = found->second.back();
    statistics_.cached -= found->first;
    found->second.pop_back();
    if (found->second.empty()) free_.erase(found);
    return block;
  }

  // Blocks of sizes that are no longer asked for must not fill the memory.
  void* map_new(size_t size) {
    const bool short_of_memory = statistics_.cached > 0 && available_memory() < size + total_memory() / 8;
    if (short_of_memory) release_locked();
    void* block = map_block(size);
    if (block == nullptr) {
      release_locked();
      block = map_block(size);
    }
    if (block == nullptr) throw std::bad_alloc();
    sizes_[block] = size;
    return block;
  }

  void release_locked() {
    for (auto& [size, blocks] : free_) {
      for (void* block : blocks) {
        unpoison(block, size);
        munmap(block, size);
        sizes_.erase(block);
      }
    }
    free_.clear();
    statistics_.cached = 0;
  }

  std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_;
  std::map<size_t, std::vector<void*>> free_;
  AllocatorStatistics statistics_;
};

BlockCache& cache() {  // never destroyed: tensors of static storage may outlive everything
  static auto* instance = new BlockCache;
  return *instance;
}

bool installed = false;

void free_tensor_memory(void* data) {
  if (data == nullptr) return;
  const bool maybe_ours = reinterpret_cast<uintptr_t>(data) % kHugePage == 0;
  if (!maybe_ours || !cache().give_back(data)) c10::free_cpu(data);
}

thread_local uint64_t allowance = UINT64_MAX;

struct CachingAllocator final : FunctionAllocator {
  c10::DataPtr take(size_t size) const override {
    if (size > allowance) {
      throw AllocationRefused(
          fmt::format("a tensor of {} is needed where {} are left", format_bytes(size), format_bytes(allowance)));
    }
    if (allowance != UINT64_MAX) allowance -= size;
    void* data = size >= kLarge ? cache().take(size) : c10::alloc_cpu(size);
    return {data, data, &free_tensor_memory, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_tensor_memory; }
};

}  // namespace

void install_caching_allocator() {
  static CachingAllocator allocator;
  c10::SetCPUAllocator(&allocator, 1);
  installed = true;
}

AllocationLimit::AllocationLimit(uint64_t bytes) : before_(allowance) { allowance = std::min(bytes, allowance); }

AllocationLimit::~AllocationLimit() { allowance = before_; }

void release_cached_memory() { cache().release(); }

AllocatorStatistics allocator_statistics() { return cache().statistics(); }

void reset_allocator_peak() { cache().reset_peak(); }

std::string allocator_text() {
  if (!installed) return "libtorch's default (large tensors go back to the system when freed)";
  const AllocatorStatistics now = allocator_statistics();
  return fmt::format("blocks of 1 MiB and more kept in 2 MiB pages ({} MiB in use, {} MiB kept)", now.used >> 20,
                     now.cached >> 20);
}

}  // namespace convssm::ops
