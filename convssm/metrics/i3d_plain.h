// I3D in plain tensor operations, the whole clip at once, batch norm as it is defined: the reference of i3d.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "convssm/metrics/i3d_resize.h"

namespace convssm::metrics {

// As I3d(weights, {resize}).logits(clip), slowly and in all the memory that the whole clip takes.
at::Tensor i3d_logits_plain(const std::string& weights, const at::Tensor& clip,
                            I3dResize resize = I3dResize::tensorflow1);

}  // namespace convssm::metrics
