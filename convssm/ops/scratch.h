// Working memory of kernels that is kept between calls.
#pragma once

#include <cstdint>

namespace convssm::ops {

// At least `count` floats, aligned to a cache line, with any values. The memory belongs to the calling thread and to the
// parallel regions it opens; the next call of the same thread may give the same memory again.
float* scratch_floats(int64_t count);

}  // namespace convssm::ops
