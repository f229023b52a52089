// The layers in libtorch's operations: a block is one channel, so frames are [C,T,H,W,1].
#include <ATen/ATen.h>

#include <limits>

#include "convssm/metrics/i3d_engine.h"
#include "convssm/metrics/i3d_geometry.h"

namespace convssm::metrics {

int64_t i3d_block() { return 1; }

int64_t i3d_padded(int64_t channels) { return channels; }

struct I3dEngine::Impl {};

struct I3dEngine::Convolution::Impl {
  at::Tensor kernel, bias;
  int64_t stride;

  I3dGeometry geometry(const at::Tensor& x, Pads time) const {
    const int64_t size = kernel.size(2);
    return {x.sizes(), {size, stride, size, stride}, time};
  }
};

struct I3dEngine::MaxPool::Impl {
  I3dPool pool;
};

I3dEngine::I3dEngine() = default;
I3dEngine::~I3dEngine() = default;

I3dEngine::Convolution::Convolution(I3dEngine&, const at::Tensor& kernel, const at::Tensor& bias, int64_t stride)
    : impl_(std::make_unique<Impl>(Impl{kernel.contiguous(), bias.contiguous(), stride})) {}
I3dEngine::Convolution::Convolution(Convolution&&) noexcept = default;
I3dEngine::Convolution& I3dEngine::Convolution::operator=(Convolution&&) noexcept = default;
I3dEngine::Convolution::~Convolution() = default;

void I3dEngine::Convolution::run(const at::Tensor& x, Pads time, const at::Tensor& out) {
  i3d_torch_convolution(impl_->geometry(x, time), x, impl_->kernel, impl_->bias, out);
}

at::Tensor I3dEngine::Convolution::run(const at::Tensor& x, Pads time) {
  const at::Tensor out = at::empty(impl_->geometry(x, time).output(x.sizes(), impl_->kernel.size(0)), at::kFloat);
  run(x, time, out);
  return out;
}

I3dEngine::MaxPool::MaxPool(I3dEngine&, const I3dPool& pool) : impl_(std::make_unique<Impl>(Impl{pool})) {}
I3dEngine::MaxPool::MaxPool(MaxPool&&) noexcept = default;
I3dEngine::MaxPool& I3dEngine::MaxPool::operator=(MaxPool&&) noexcept = default;
I3dEngine::MaxPool::~MaxPool() = default;

at::Tensor I3dEngine::MaxPool::run(const at::Tensor& x, Pads time) {
  const I3dGeometry g(x.sizes(), impl_->pool, time);
  const double nothing = -std::numeric_limits<double>::infinity();
  const at::Tensor padded = at::constant_pad_nd(i3d_unblocked(x), g.padding(), nothing).unsqueeze(0);
  return at::max_pool3d(padded, g.kernel, g.stride)[0].unsqueeze(-1);
}

}  // namespace convssm::metrics
