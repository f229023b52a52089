// A device that is not the CPU, without hardware. libtorch computes with its tensors as on a GPU, by operations of its own
// alone: an operation that is given a tensor left on the CPU as well is an error (numbers, which are tensors without
// dimensions, may be mixed, as on a GPU), and who reads its memory by address crashes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace convssm::testing {

at::Device other_device();

// Why its gradients cannot be computed here; "" if they can. A libtorch with CUDA asks CUDA for a stream in every backward
// pass beside the CPU's, whatever the device, and without a driver that is an error.
std::string obstacle_to_gradients();

// Operations that ran on it so far: a test that means to run there and does not would otherwise pass.
int64_t operations_on_other_device();

}  // namespace convssm::testing
