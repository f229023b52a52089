// An allocator put in front of the one that is there; it notes sizes and hands everything on. Tensors may outlive the
// meter, so the noted deleters stay with the counter, which is never destroyed.
#include "convssm/ops/memory_meter.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "convssm/base/error.h"
#include "convssm/ops/function_allocator.h"

namespace convssm::ops {
namespace {

// Hands every request on to the allocator that was there and notes its size.
class CountingAllocator final : public FunctionAllocator {
 public:
  c10::DataPtr take(size_t size) const override;
  c10::DeleterFnPtr raw_deleter() const override { return &forget; }

  void start(c10::Allocator* inner) {
    const std::lock_guard lock(mutex_);
    if (inner_ != nullptr) fail(ErrorKind::usage, "[MemoryMeter] there is one already");
    inner_ = inner;
    used_ = peak_ = 0;
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    inner_ = nullptr;
  }
  uint64_t peak() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  struct Block {
    size_t size;
    void* context;
    c10::DeleterFnPtr deleter;
  };
  static void forget(void* data);

  mutable std::mutex mutex_;
  c10::Allocator* inner_ = nullptr;
  mutable std::unordered_map<void*, Block> blocks_;
  mutable uint64_t used_ = 0, peak_ = 0;
};

CountingAllocator& counter() {
  static auto* allocator = new CountingAllocator();  // outlives every tensor, those of other static objects too
  return *allocator;
}

c10::DataPtr CountingAllocator::take(size_t size) const {
  c10::DataPtr inner = inner_->allocate(size);
  void* data = inner.get();
  if (data == nullptr) return inner;
  const std::lock_guard lock(mutex_);
  const c10::DeleterFnPtr deleter = inner.get_deleter();
  blocks_[data] = {size, inner.release_context(), deleter};
  used_ += size;
  peak_ = std::max(peak_, used_);
  return {data, data, &forget, c10::Device(c10::DeviceType::CPU)};
}

void CountingAllocator::forget(void* data) {
  Block block{};
  {
    const std::lock_guard lock(counter().mutex_);
    const auto found = counter().blocks_.find(data);
    if (found == counter().blocks_.end()) return;
    block = found->second;
    counter().blocks_.erase(found);
    counter().used_ -= std::min<uint64_t>(counter().used_, block.size);
  }
  block.deleter(block.context);
}

constexpr uint8_t kPriority = 255;

}  // namespace

MemoryMeter::MemoryMeter() : before_(c10::GetCPUAllocator()) {
  counter().start(before_);
  c10::SetCPUAllocator(&counter(), kPriority);
}

MemoryMeter::~MemoryMeter() {
  c10::SetCPUAllocator(before_, kPriority);
  counter().stop();
}

uint64_t MemoryMeter::peak() const { return counter().peak(); }

}  // namespace convssm::ops
