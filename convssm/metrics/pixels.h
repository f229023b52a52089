// From what a model puts out, frames in [-1,1], to what the metrics read, frames in [0,1]. The paper stores 8-bit pixels
// in between and truncates: u8_to_f01(truncate_u8(x)). Truncation is half a level darker than rounding on average.
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::metrics {

// trunc(255 (x/2 + 1/2)) as uint8, in float32 and after a clamp to [-1,1]; any shape; NaN is refused.
// It does not undo p -> p/127.5 - 1: float32 puts 63 of the 256 levels just below a whole number, and they come out one
// lower. Where the original bytes of the truth are at hand, compare with those.
at::Tensor truncate_u8(const at::Tensor& x);

// p/255 as float32, any shape.
at::Tensor u8_to_f01(const at::Tensor& pixels);

// u8_to_f01(truncate_u8(x)): what the paper compares.
at::Tensor truncated_f01(const at::Tensor& x);

// x/2 + 1/2 after a clamp to [-1,1], without the 8-bit step; NaN is refused.
at::Tensor to_f01(const at::Tensor& x);

}  // namespace convssm::metrics
