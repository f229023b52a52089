// What the files of the steps of a plan share.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>

namespace convssm::nn {

// A parameter as it is now, in memory of its own.
inline at::Tensor frozen(const at::Tensor& parameter) { return parameter.detach().to(at::kFloat).contiguous().clone(); }

// Rows of this many values that a thread takes at least: fewer are not worth waking it.
inline int64_t grain(int64_t row) { return std::max<int64_t>(4096 / row, 1); }

}  // namespace convssm::nn
