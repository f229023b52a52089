// Attention of a plan, by libtorch's products: a frame at a time, so that a frame's numbers do not depend on the batch. It is a
// small part of a coder, and what the products allocate is small too.
#include <ATen/ATen.h>

#include <cmath>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"

namespace convssm::nn {

Buffer FramePlan::attention(Buffer q, Buffer k, Buffer v) {
  ops::require(
      "FramePlan",
      q.channels == k.channels && q.channels == v.channels && q.pixels() == k.pixels() && k.pixels() == v.pixels(),
      "attention takes q, k and v of one size, got {}, {} and {} channels", q.channels, k.channels, v.channels);
  const Buffer y = make(v.channels, v.height, v.width);
  step({q, k, v, y}, [this, q, k, v, y] {
    const at::NoGradGuard no_grad;
    const double scale = 1 / std::sqrt(static_cast<double>(q.channels));
    for (int64_t i = 0; i < batch(); ++i) {
      const auto rows = [&](Buffer x) {
        return at::from_blob(at(x) + i * x.pixels() * x.channels, {x.pixels(), x.channels});
      };
      const at::Tensor weights = at::softmax(at::mm(rows(q), rows(k).t()).mul_(scale), -1);
      at::Tensor out = rows(y);
      at::mm_out(out, weights, rows(v));
    }
  });
  return y;
}

}  // namespace convssm::nn
