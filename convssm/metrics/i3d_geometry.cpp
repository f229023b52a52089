// SAME padding with a stride is not symmetric, so libtorch gets frames that are padded already.
#include "convssm/metrics/i3d_geometry.h"

#include <ATen/ATen.h>

namespace convssm::metrics {

I3dGeometry::I3dGeometry(at::IntArrayRef x, const I3dPool& k, I3dEngine::Pads time)
    : kernel{k.time_kernel, k.kernel, k.kernel}, stride{k.time_stride, k.stride, k.stride} {
  const SamePadding rows = same_padding(x[2], k.kernel, k.stride), columns = same_padding(x[3], k.kernel, k.stride);
  front = {time.front, rows.front, columns.front};
  back = {time.back, rows.back, columns.back};
}

std::vector<int64_t> I3dGeometry::output(at::IntArrayRef x, int64_t channels) const {
  std::vector<int64_t> out{channels / i3d_block()};
  for (size_t d = 0; d < 3; ++d) out.push_back((x[d + 1] + front[d] + back[d] - kernel[d]) / stride[d] + 1);
  out.push_back(i3d_block());
  return out;
}

at::Tensor i3d_unblocked(const at::Tensor& x) { return x.dim() == 4 ? x : x.permute({0, 4, 1, 2, 3}).flatten(0, 1); }

void i3d_torch_convolution(const I3dGeometry& geometry, const at::Tensor& x, const at::Tensor& kernel,
                           const at::Tensor& bias, const at::Tensor& out) {
  const at::Tensor padded = at::constant_pad_nd(i3d_unblocked(x), geometry.padding());
  const at::Tensor y = at::conv3d(padded.unsqueeze(0), kernel, bias, geometry.stride).relu_()[0];
  at::Tensor(out).copy_(y.unflatten(0, {out.size(0), out.size(4)}).permute({0, 2, 3, 4, 1}));
}

}  // namespace convssm::metrics
