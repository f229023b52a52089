// What keeping memory in huge pages is worth: an elementwise sum into a fresh 200 MB tensor, against libtorch's default
// allocator, which takes the block from the system and gives it back each time; and a copy, against kept 4 KiB pages.
#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <cstring>
#include <new>

#include "bench/harness.h"
#include "bench/training_step.h"
#include "convssm/base/memory.h"

namespace convssm::bench {
namespace {

constexpr int64_t kValues = 50'000'000;

void sum_into_fresh(const at::Tensor& x, const at::Tensor& y, c10::Allocator* allocator) {
  const c10::DataPtr memory = allocator->allocate(kValues * sizeof(float));
  at::Tensor out = at::from_blob(memory.get(), {kValues}, at::kFloat);
  at::add_out(out, x, y);
}

// Memory that is kept, but in pages of 4 KiB.
class SmallPages {
 public:
  explicit SmallPages(size_t size) : size_(size) {
    data_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    madvise(data_, size, MADV_NOHUGEPAGE);
    std::memset(data_, 1, size);
  }
  ~SmallPages() { munmap(data_, size_); }
  SmallPages(const SmallPages&) = delete;
  SmallPages& operator=(const SmallPages&) = delete;
  void* data() const { return data_; }

 private:
  size_t size_;
  void* data_;
};

Row compare_pages(int rounds, const at::Tensor& x, const at::Tensor& y) {
  const auto bytes = static_cast<int64_t>(x.nbytes());
  const SmallPages from(x.nbytes()), to(x.nbytes());
  return compare(
      "memory.pages", "the same copy between kept blocks in pages of 4 KiB", rounds,
      [&] { copy_bytes(y.data_ptr(), x.data_ptr(), bytes); }, [&] { copy_bytes(to.data(), from.data(), bytes); });
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

// Of one step in steady state.
double faults_of(TrainingStep& step, c10::Allocator* allocator) {
  constexpr uint8_t kPriority = 255;
  c10::Allocator* before = c10::GetCPUAllocator();
  c10::SetCPUAllocator(allocator, kPriority);
  step.run();
  step.run();
  const uint64_t start = minor_faults();
  step.run();
  const uint64_t faults = minor_faults() - start;
  c10::SetCPUAllocator(before, kPriority);
  return static_cast<double>(faults);
}

Row step_faults() {
  const BenchModel subject = make_bench_model("mini", "convs5");
  TrainingStep step(subject, subject.clip(51));
  const double kept = faults_of(step, c10::GetCPUAllocator()), fresh = faults_of(step, c10::GetDefaultCPUAllocator());
  return {"memory.faults.step",
          kept,
          "faults",
          fresh,
          0,
          0,
          "page faults of a training step with libtorch's default allocator"};
}

}  // namespace

void bench_memory(const Settings& settings, const Report& report) {
  const int rounds = settings.rounds;
  const at::Tensor x = at::ones({kValues}), y = at::ones({kValues});
  report(compare(
      "memory.fresh", "the same sum with libtorch's default allocator", rounds,
      [&] { sum_into_fresh(x, y, c10::GetCPUAllocator()); },
      [&] { sum_into_fresh(x, y, c10::GetDefaultCPUAllocator()); }));
  report(faults(x, y));
  report(step_faults());
  report(compare_pages(rounds, x, y));
}

}  // namespace convssm::bench
