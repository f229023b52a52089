// What keeping memory is worth: an elementwise sum into a fresh 200 MB tensor, with our allocator against libtorch's
// default, which takes the block from the system and gives it back each time.
#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>

#include "convssm/base/memory.h"
#include "convssm/bench/harness.h"

namespace convssm::bench {
namespace {

constexpr int64_t kValues = 50'000'000;

void sum_into_fresh(const at::Tensor& x, const at::Tensor& y, c10::Allocator* allocator) {
  const c10::DataPtr memory = allocator->allocate(kValues * sizeof(float));
  at::Tensor out = at::from_blob(memory.get(), {kValues}, at::kFloat);
  at::add_out(out, x, y);
}

Row faults(const at::Tensor& x, const at::Tensor& y) {
  const auto count = [&](c10::Allocator* allocator) {
    const auto before = minor_faults();
    sum_into_fresh(x, y, allocator);
    return static_cast<double>(minor_faults() - before);
  };
  const double kept = count(c10::GetCPUAllocator()), fresh = count(c10::GetDefaultCPUAllocator());
  return {"memory.faults", kept, "faults", fresh, 0, 0, "page faults of one sum with libtorch's default allocator"};
}

}  // namespace

void bench_memory(int rounds, const Report& report) {
  const at::Tensor x = at::ones({kValues}), y = at::ones({kValues});
  report(compare(
      "memory.fresh", "the same sum with libtorch's default allocator", rounds,
      [&] { sum_into_fresh(x, y, c10::GetCPUAllocator()); },
      [&] { sum_into_fresh(x, y, c10::GetDefaultCPUAllocator()); }));
  report(faults(x, y));
}

}  // namespace convssm::bench
