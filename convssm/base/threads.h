// The number of OpenMP threads, set explicitly, and flush-to-zero on each of them.
// Denormal numbers make multiplications 5-100 times slower and never matter to a model.
#pragma once

namespace convssm {

// CPUs that this process may use: its affinity mask, cut down to the CPU quota of its container. At least 1.
int hardware_threads();

// CPUs of its affinity mask alone.
int affinity_cpus();

// Parallel regions started from the calling thread use n threads. n from 1 to 4 * hardware_threads().
void set_threads(int n);

// What a parallel region started now would use.
int threads();

// Denormal inputs and results count as 0: on the calling thread and on every worker of its parallel regions.
// Threads started later inherit it from the thread that starts them.
void flush_denormals_on_all_threads();

// Whether the calling thread flushes denormals. Always false on CPUs other than x86 and ARM64.
bool denormals_flushed();

}  // namespace convssm
