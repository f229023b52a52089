// Rows of the small image are independent, and each belongs to two adjoining rows of the large one, so forward and
// backward share one loop over them. Channels are innermost: the compiler vectorizes over them.
#include "convssm/ops/resize.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "convssm/ops/check.h"
#include "convssm/ops/device.h"
#include "convssm/ops/elementwise.h"

namespace convssm::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kResizeGrain = 16 * 1024;  // values per task

// run(small row, large row) for all pairs of rows of pixels, the large one being the upper of two; on each thread its
// own. Rows are [W/2,C] and [W,C].
template <typename T, typename Run>
void for_rows(const at::Tensor& small, const at::Tensor& large, const Run& run) {
  const int64_t row = small.size(3) * small.size(1), rows = small.size(0) * small.size(2);
  at::parallel_for(0, rows, (kResizeGrain + row) / (row + 1), [&](int64_t i, int64_t end) {
    for (; i < end; ++i) run(small.data_ptr<T>() + i * row, large.data_ptr<T>() + i * 4 * row);
  });
}

template <typename T>
void run_forward(const at::Tensor& x, const at::Tensor& out) {
  const int64_t C = x.size(1), W = x.size(3);
  for_rows<T>(out, x, [&](T* small, const T* large) {
    for (int64_t w = 0; w < W / 2; ++w) {
      const T *a = large + 2 * w * C, *b = a + W * C;
      for (int64_t c = 0; c < C; ++c) small[w * C + c] = T(0.25) * ((a[c] + a[C + c]) + (b[c] + b[C + c]));
    }
  });
}

template <typename T>
void run_backward(const at::Tensor& g, const at::Tensor& out) {
  const int64_t C = g.size(1), W = out.size(3);
  for_rows<T>(g, out, [&](const T* small, T* large) {
    for (int64_t w = 0; w < W / 2; ++w) {
      T *a = large + 2 * w * C, *b = a + W * C;
      for (int64_t c = 0; c < C; ++c) a[c] = a[C + c] = b[c] = b[C + c] = T(0.25) * small[w * C + c];
    }
  });
}

struct HalfSizeFunction : torch::autograd::Function<HalfSizeFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_in) {
    const at::Tensor x = channels_together(x_in);
    ctx->saved_data["size"] = x.sizes().vec();
    const at::Tensor out = at::empty({x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2},
                                     x.options().requires_grad(false), at::MemoryFormat::ChannelsLast);
    if (x.scalar_type() == at::kFloat) {
      run_forward<float>(x, out);
    } else {
      run_forward<double>(x, out);
    }
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const std::vector<int64_t> size = ctx->saved_data["size"].toIntVector();
    if (at::GradMode::is_enabled()) return {at::upsample_nearest2d(grads[0], {size[2], size[3]}) * 0.25};
    const at::Tensor g = channels_together(grads[0]);
    const at::Tensor out = at::empty(size, g.options(), at::MemoryFormat::ChannelsLast);
    if (g.scalar_type() == at::kFloat) {
      run_backward<float>(g, out);
    } else {
      run_backward<double>(g, out);
    }
    return {out};
  }
};

}  // namespace

at::Tensor half_size(const at::Tensor& x) {
  require_dims("half_size", "x", x, 4, "[N,C,H,W]");
  require("half_size", x.size(2) % 2 == 0 && x.size(3) % 2 == 0, "height and width must be even, got {}",
          shape_text(x.sizes()));
  if (!has_kernels(x)) return half_size_plain(x);
  return HalfSizeFunction::apply(x);
}

at::Tensor half_size_plain(const at::Tensor& x) { return at::avg_pool2d(x, 2, 2); }

}  // namespace convssm::ops
