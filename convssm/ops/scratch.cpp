#include "convssm/ops/scratch.h"

#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>

namespace convssm::ops {
namespace {

constexpr int64_t kHugePage = 2 << 20;

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};

struct Scratch {
  std::unique_ptr<float, Free> memory;
  int64_t bytes = 0;
};

}  // namespace

float* scratch_floats(int64_t count) {
  thread_local Scratch scratch;
  const int64_t wanted = count * static_cast<int64_t>(sizeof(float));
  if (wanted <= scratch.bytes) return scratch.memory.get();
  const int64_t bytes = (wanted + kHugePage - 1) / kHugePage * kHugePage;
  scratch = {};
  void* memory = std::aligned_alloc(kHugePage, static_cast<size_t>(bytes));
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  scratch.memory.reset(static_cast<float*>(memory));
  scratch.bytes = bytes;
  return scratch.memory.get();
}

}  // namespace convssm::ops
