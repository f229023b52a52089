// Standard normal numbers from a stream: the noise of losses that draw. The same numbers for every type and device.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/base/random.h"

namespace convssm::ops {

at::Tensor normal_numbers(at::IntArrayRef sizes, Stream stream, const at::TensorOptions& like);

}  // namespace convssm::ops
