// Each stage as TensorFlow defines it, with nothing folded or fused: what i3d.cpp must equal. Padding is explicit,
// because SAME with a stride is not symmetric; a pool pads with minus infinity.
#include "convssm/metrics/i3d_plain.h"

#include <ATen/ATen.h>

#include <limits>

#include "convssm/metrics/i3d_layout.h"

namespace convssm::metrics {
namespace {

// SAME padding of x [1,C,T,H,W]
at::Tensor pad(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride, double value) {
  std::vector<int64_t> pads;
  for (int64_t d = 2; d >= 0; --d) {
    const SamePadding p = same_padding(x.size(d + 2), kernel[static_cast<size_t>(d)], stride[static_cast<size_t>(d)]);
    pads.insert(pads.end(), {p.front, p.back});
  }
  return at::constant_pad_nd(x, pads, value);
}

class Plain {
 public:
  explicit Plain(const std::string& weights) : weights_(weights) {}

  at::Tensor operator()(const at::Tensor& x, const I3dUnit& unit) const {
    const auto w = weights_.read(unit);
    const std::vector<int64_t> kernel(3, unit.kernel), stride(3, unit.stride);
    const at::Tensor y = at::conv3d(pad(x, kernel, stride, 0), w.kernel.to(x.scalar_type()), {}, stride);
    const auto channels = [&](const at::Tensor& v) { return v.to(x.scalar_type()).view({1, -1, 1, 1, 1}); };
    return at::relu((y - channels(w.mean)) / at::sqrt(channels(w.variance) + i3d_epsilon) + channels(w.offset));
  }

  at::Tensor operator()(const at::Tensor& x, const I3dPool& pool) const {
    const std::vector<int64_t> kernel{pool.time_kernel, pool.kernel, pool.kernel};
    const std::vector<int64_t> stride{pool.time_stride, pool.stride, pool.stride};
    return at::max_pool3d(pad(x, kernel, stride, -std::numeric_limits<double>::infinity()), kernel, stride);
  }

  at::Tensor operator()(const at::Tensor& x, const I3dMixed& mixed) const {
    const Plain& self = *this;
    return at::cat({self(x, mixed.branch0), self(self(x, mixed.reduce1), mixed.branch1),
                    self(self(x, mixed.reduce2), mixed.branch2), self(self(x, I3dPool{3, 1, 3, 1}), mixed.branch3)},
                   1);
  }

  at::Tensor logits(const at::Tensor& x) const {
    const auto w = weights_.read(i3d_last_unit());
    const at::Tensor pooled = at::avg_pool3d(x, {2, 7, 7}, {1, 1, 1});
    return at::conv3d(pooled, w.kernel.to(x.scalar_type()), w.offset.to(x.scalar_type()))
        .mean(at::IntArrayRef{2, 3, 4})[0];
  }

 private:
  I3dWeights weights_;
};

}  // namespace

at::Tensor i3d_logits_plain(const std::string& weights, const at::Tensor& clip, I3dResize resize) {
  check_i3d_clip(clip);
  const at::NoGradGuard no_grad;
  const Plain layer(weights);
  at::Tensor x = i3d_frames(clip, resize).unsqueeze(0);
  if (x.size(1) == 1) x = x.expand({1, 3, -1, -1, -1});
  for (const I3dStage& stage : i3d_stages()) x = std::visit([&](const auto& s) { return layer(x, s); }, stage);
  return layer.logits(x);
}

}  // namespace convssm::metrics
