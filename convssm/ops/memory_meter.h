// Counts the memory of tensors while it lives, for estimates before a long run:
//   MemoryMeter meter;   model.loss(...);   uint64_t most = meter.peak();
// One at a time; tensors made under it may outlive it. Library scratch memory outside of tensors is not seen.
#pragma once

#include <cstdint>

namespace c10 {
struct Allocator;
}

namespace convssm::ops {

class MemoryMeter {
 public:
  MemoryMeter();
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  uint64_t peak() const;  // the most bytes that tensors made under it held at once

 private:
  c10::Allocator* before_;
};

}  // namespace convssm::ops
