// Attention of a plan, and what picks rows: tokens are the pixels of a small frame. Heads and ranges of queries go to threads;
// a row's numbers depend on neither, nor on the batch.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <cstring>

#include "convssm/nn/frame_plan.h"
#include "convssm/nn/frame_steps.h"
#include "convssm/ops/attention_kernels.h"
#include "convssm/ops/check.h"

namespace convssm::nn {

Buffer FramePlan::attention(Buffer q, Buffer k, Buffer v, int64_t heads) {
  ops::require("FramePlan", q.channels == k.channels && q.channels == v.channels && k.pixels() == v.pixels(),
               "attention takes q, k and v of one size, got {}, {} and {} channels", q.channels, k.channels,
               v.channels);
  ops::require("FramePlan", heads > 0 && q.channels % heads == 0, "heads must divide the {} channels, got {}",
               q.channels, heads);
  const Buffer y = make(q.channels, q.height, q.width);
  const int64_t size = q.channels / heads,
                ranges = heads > 1 ? 1 : std::min<int64_t>(at::get_num_threads(), q.pixels());
  const int64_t parts = batch() * heads * ranges, each = ops::attention_scratch(k.pixels(), size);
  const at::Tensor scratch = at::empty({parts, each});
  step({q, k, v, y}, [this, q, k, v, y, heads, size, ranges, parts, scratch] {
    const int64_t C = q.channels;
    at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t range = i % ranges, head = i / ranges % heads, frame = i / ranges / heads;
        const int64_t first = q.pixels() * range / ranges, last = q.pixels() * (range + 1) / ranges;
        const int64_t row = frame * q.pixels() + first, keys = frame * k.pixels() * C + head * size;
        ops::attention_head({last - first, k.pixels(), size, C, 1 / std::sqrt(static_cast<float>(size)),
                             at(q) + row * C + head * size, at(k) + keys, at(v) + keys, at(y) + row * C + head * size,
                             scratch.data_ptr<float>() + i * scratch.size(1)});
      }
    });
  });
  return y;
}

Buffer FramePlan::look_up(const at::Tensor& table, const at::Tensor& choice, Buffer base) {
  const at::Tensor rows = frozen(table);
  ops::require("FramePlan", rows.dim() == 2 && rows.size(1) == base.channels,
               "a table of {} channels is expected, got {}", base.channels, ops::shape_text(rows.sizes()));
  const Buffer y = make(base.channels, base.height, base.width);
  step({base, y}, [this, base, y, rows, choice] {
    const int64_t C = base.channels;
    const int64_t* chosen = choice.data_ptr<int64_t>();
    for (int64_t p = 0; p < batch() * base.pixels(); ++p) {
      const int64_t row = chosen[p];
      ops::require("FramePlan", row >= 0 && row < rows.size(0), "rows are 0 to {}, got {}", rows.size(0) - 1, row);
      const float *a = rows.data_ptr<float>() + row * C, *b = at(base) + p * C;
      float* out = at(y) + p * C;
      for (int64_t c = 0; c < C; ++c) out[c] = a[c] + b[c];
    }
  });
  return y;
}

Buffer FramePlan::pick(Buffer x, const at::Tensor& places) {
  const int64_t count = places.size(1);
  const Buffer y = make(x.channels, 1, count);
  step({x, y}, [this, x, y, places, count] {
    const int64_t C = x.channels;
    const int64_t* chosen = places.data_ptr<int64_t>();
    for (int64_t i = 0; i < batch() * count; ++i) {
      ops::require("FramePlan", chosen[i] >= 0 && chosen[i] < x.pixels(), "places are 0 to {}, got {}", x.pixels() - 1,
                   chosen[i]);
      const float* from = at(x) + (i / count * x.pixels() + chosen[i]) * C;
      std::memcpy(at(y) + i * C, from, static_cast<size_t>(C) * sizeof(float));
    }
  });
  return y;
}

}  // namespace convssm::nn
