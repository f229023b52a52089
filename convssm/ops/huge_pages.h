// An array in pages of 2 MiB where the system has them: large tables are read without waiting for page lookups.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "convssm/base/poison.h"

namespace convssm::ops {

// Values are not set. 64-byte aligned.
template <typename T>
class HugePages {
 public:
  HugePages() = default;
  explicit HugePages(size_t size) : size_(size) {
    constexpr size_t kPage = size_t{2} << 20;
    const size_t bytes = (size * sizeof(T) + kPage - 1) / kPage * kPage;
    memory_.reset(static_cast<T*>(std::aligned_alloc(kPage, bytes)));
    if (memory_ == nullptr) throw std::bad_alloc();
    madvise(memory_.get(), bytes, MADV_HUGEPAGE);
    poison(memory_.get() + size, bytes - size * sizeof(T));
  }
  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> memory_;
  size_t size_ = 0;
};

}  // namespace convssm::ops
