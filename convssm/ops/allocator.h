// Memory for tensors that stays with the process, in huge pages.
// A fresh block from the kernel costs a page fault and a zeroing per 4 KiB, which is several times the cost of an
// elementwise operation on it. So large blocks are asked for once, in 2 MiB pages, and kept for the next tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "convssm/base/error.h"

namespace convssm::ops {

// Makes libtorch allocate CPU tensors of 1 MiB and more here. Smaller ones stay with the default allocator.
void install_caching_allocator();

struct AllocationRefused : Error {
  explicit AllocationRefused(const std::string& message) : Error(ErrorKind::usage, message) {}
};

// While it lives, the tensors that this thread makes may take `bytes` in all, those that were freed included. One that
// would be more is AllocationRefused before it is allocated. Works where install_caching_allocator() was called.
class AllocationLimit {
 public:
  explicit AllocationLimit(uint64_t bytes);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;

 private:
  uint64_t before_;
};

// Gives the blocks that no tensor uses back to the system.
void release_cached_memory();

struct AllocatorStatistics {
  size_t used = 0;       // bytes in tensors
  size_t cached = 0;     // bytes kept for later
  size_t peak_used = 0;  // highest `used` since reset_peak()
};
AllocatorStatistics allocator_statistics();
void reset_allocator_peak();

// One line for people: what allocates tensors.
std::string allocator_text();

}  // namespace convssm::ops
