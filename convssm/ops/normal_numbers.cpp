// Drawn one after the other in double: a stream has no order of its own among threads.
#include "convssm/ops/normal_numbers.h"

#include <ATen/ATen.h>

namespace convssm::ops {

at::Tensor normal_numbers(at::IntArrayRef sizes, Stream stream, const at::TensorOptions& like) {
  at::Tensor x = at::empty(sizes, at::kDouble);
  double* values = x.data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) values[i] = stream.normal();
  return x.to(like);
}

}  // namespace convssm::ops
