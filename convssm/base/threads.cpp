// hardware_concurrency() counts the CPUs of the machine; in a container that has two of sixty-four it would start
// sixty-four threads. So the affinity mask and the CPU quota decide. Flush-to-zero is a register of each thread: it has
// to be set on all threads of the pool, from inside a parallel region.
#include "convssm/base/threads.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <thread>

#include "convssm/base/cgroup.h"
#include "convssm/base/error.h"

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

namespace convssm {
namespace {

#if defined(__x86_64__) || defined(__i386__)

constexpr unsigned kFlushBits = 0x8040;  // FTZ (results) and DAZ (inputs)

void flush_denormals() { _mm_setcsr(_mm_getcsr() | kFlushBits); }

bool flushes() { return (_mm_getcsr() & kFlushBits) == kFlushBits; }

#elif defined(__aarch64__)

constexpr uint64_t kFlushBits = uint64_t{1} << 24;  // FPCR.FZ, both results and inputs

uint64_t control_register() {
  uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}

void flush_denormals() { asm volatile("msr fpcr, %0" ::"r"(control_register() | kFlushBits)); }

bool flushes() { return (control_register() & kFlushBits) != 0; }

#else

void flush_denormals() {}

bool flushes() { return false; }

#endif

}  // namespace

// cpu_set_t holds 1024 CPUs; the kernel refuses a mask smaller than its own, so grow until it accepts.
int affinity_cpus() {
  for (int cpus = CPU_SETSIZE; cpus <= 64 * CPU_SETSIZE; cpus *= 2) {
    const auto release = [](cpu_set_t* mask) { CPU_FREE(mask); };
    const std::unique_ptr<cpu_set_t, decltype(release)> mask(CPU_ALLOC(static_cast<size_t>(cpus)), release);
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    if (mask && sched_getaffinity(0, size, mask.get()) == 0) return CPU_COUNT_S(size, mask.get());
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int hardware_threads() {
  const int allowed = affinity_cpus();
  const auto quota = cgroup_cpus();
  return quota ? std::clamp(static_cast<int>(std::ceil(*quota)), 1, allowed) : allowed;
}

void set_threads(int n) {
  const int most = 4 * hardware_threads();
  if (n < 1 || n > most) {
    fail(ErrorKind::usage, "[set_threads] the number of threads must be from 1 to {} on this machine, got {}", most, n);
  }
  omp_set_dynamic(0);  // n is what was asked for, not an upper bound
  omp_set_num_threads(n);
}

int threads() { return omp_get_max_threads(); }

void flush_denormals_on_all_threads() {
  flush_denormals();
#pragma omp parallel
  flush_denormals();
}

bool denormals_flushed() { return flushes(); }

}  // namespace convssm
