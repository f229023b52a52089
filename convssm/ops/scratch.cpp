// One block per thread that only grows. Kernels ask for it on every call; to allocate it each time would cost page
// faults.
#include "convssm/ops/scratch.h"

#include "convssm/ops/huge_pages.h"

namespace convssm::ops {

float* scratch_floats(int64_t count) {
  thread_local HugePages<float> memory;
  const auto wanted = static_cast<size_t>(count);
  if (wanted > memory.size()) {
    memory = HugePages<float>();  // the old one goes first
    memory = HugePages<float>(wanted);
  }
  unpoison(memory.data(), wanted * sizeof(float));
  poison(memory.data() + wanted, (memory.size() - wanted) * sizeof(float));
  return memory.data();
}

}  // namespace convssm::ops
