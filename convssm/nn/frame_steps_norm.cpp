// Norms and elementwise steps of a plan. At a batch of one all threads share the frame: group norm is cut by groups,
// which need no sums across threads, the others by pixels or values.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "convssm/nn/frame_plan.h"
#include "convssm/nn/frame_steps.h"
#include "convssm/ops/activation_kernels.h"
#include "convssm/ops/check.h"
#include "convssm/ops/frame_kernels.h"
#include "convssm/ops/group_norm_range_kernels.h"
#include "convssm/ops/norm.h"
#include "convssm/ops/norm_kernels.h"

namespace convssm::nn {
namespace {

// Group norm of a frame cut into ranges of groups, one for each thread.
struct GroupNormStep {
  at::Tensor weight, bias, sums, means, scales;  // the last three: scratch [batch, channels]
  int64_t groups, ranges;
  ops::Activation activation;

  void run(const float* x, float* y, int64_t index, Buffer shape) const {
    const int64_t C = shape.channels, frame = index / ranges, range = index % ranges, width = C / groups;
    const int64_t start = frame * shape.pixels() * C, own = frame * C;
    ops::group_norm_range({activation, shape.pixels(), C, width, groups * range / ranges * width,
                           groups * (range + 1) / ranges * width, ops::kNormEps, x + start, weight.data_ptr<float>(),
                           bias.data_ptr<float>(), y + start, sums.data_ptr<double>() + own,
                           means.data_ptr<float>() + own, scales.data_ptr<float>() + own});
  }
};

}  // namespace

Buffer FramePlan::group_norm(Buffer x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias,
                             ops::Activation activation) {
  ops::require("FramePlan", groups > 0 && x.channels % groups == 0, "groups must divide the {} channels, got {}",
               x.channels, groups);
  const at::Tensor per_frame = at::zeros({batch(), x.channels});
  const GroupNormStep norm{frozen(weight),
                           frozen(bias),
                           per_frame.to(at::kDouble),
                           per_frame.clone(),
                           per_frame.clone(),
                           groups,
                           std::min<int64_t>(groups, at::get_num_threads()),
                           activation};
  const Buffer y = make(x.channels, x.height, x.width);
  step({x, y}, [this, x, y, norm] {
    at::parallel_for(0, batch() * norm.ranges, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) norm.run(at(x), at(y), i, x);
    });
  });
  return y;
}

Buffer FramePlan::layer_norm(Buffer x, const at::Tensor& weight, const at::Tensor& bias) {
  return add_layer_norm(x, {}, weight, bias);
}

Buffer FramePlan::add_layer_norm(Buffer x, Buffer other, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor w = frozen(weight), b = frozen(bias);
  const Buffer y = make(x.channels, x.height, x.width);
  step({x, other, y}, [this, x, other, y, w, b] {
    const int64_t C = x.channels;
    at::parallel_for(0, batch() * x.pixels(), grain(C), [&](int64_t begin, int64_t end) {
      const float* added = other.id < 0 ? nullptr : at(other) + begin * C;
      ops::layer_norm_rows(ops::LayerNormRows<float>{end - begin, C, ops::kNormEps, at(x) + begin * C, added,
                                                     w.data_ptr<float>(), b.data_ptr<float>(), nullptr,
                                                     at(y) + begin * C});
    });
  });
  return y;
}

Buffer FramePlan::activate(Buffer x, ops::Activation activation) { return add(x, {}, activation); }

Buffer FramePlan::add(Buffer x, Buffer other, ops::Activation activation) {
  const Buffer y = make(x.channels, x.height, x.width);
  step({x, other, y}, [this, x, other, y, activation] {
    at::parallel_for(0, size(x), grain(1), [&](int64_t begin, int64_t end) {
      const float* added = other.id < 0 ? nullptr : at(other) + begin;
      ops::activate_loop(
          ops::ActivateLoop<float>{activation, at(x) + begin, added, nullptr, at(y) + begin, end - begin});
    });
  });
  return y;
}

void FramePlan::copy(Buffer x, Buffer to) {
  step({x, to}, [this, x, to] { std::copy_n(at(x), size(x), at(to)); });
}

Buffer FramePlan::gate(Buffer x, Buffer z) {
  const Buffer y = make(x.channels, x.height, x.width);
  step({x, z, y}, [this, x, z, y] {
    at::parallel_for(0, size(x), grain(1), [&](int64_t begin, int64_t end) {
      ops::gate_loop(at(x) + begin, at(z) + begin, at(y) + begin, end - begin);
    });
  });
  return y;
}

Buffer FramePlan::multiply(Buffer x, Buffer other) {
  const Buffer y = make(x.channels, x.height, x.width);
  step({x, other, y}, [this, x, other, y] {
    at::parallel_for(0, size(x), grain(1), [&](int64_t begin, int64_t end) {
      const float *a = at(x), *b = at(other);
      float* out = at(y);
      for (int64_t i = begin; i < end; ++i) out[i] = a[i] * b[i];
    });
  });
  return y;
}

void FramePlan::add_row(Buffer x, const at::Tensor& table, const at::Tensor& choice) {
  const at::Tensor rows = frozen(table);
  ops::require_shape("FramePlan", "choice", choice, {batch()});
  step({x}, [this, x, rows, choice] {
    const int64_t last = rows.size(0) - 1, C = x.channels;
    const int64_t* chosen = choice.data_ptr<int64_t>();
    for (int64_t b = 0; b < batch(); ++b) {
      ops::require("FramePlan", chosen[b] < last, "a choice must be below {}, the last row, got {}", last, chosen[b]);
    }
    at::parallel_for(0, batch() * x.height, grain(x.width * C), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = chosen[i / x.height] < 0 ? last : chosen[i / x.height];
        ops::scale_rows({x.width, C, nullptr, rows.data_ptr<float>() + row * C, at(x) + i * x.width * C});
      }
    });
  });
}

namespace {

// One frame of a squeeze-and-excitation: its gates from its means.
struct Excite {
  at::Tensor down, down_bias, up, up_bias;
  at::Tensor sums, means, hidden, gates;  // scratch [batch, channels], hidden [batch, H]

  static float dense(const at::Tensor& weight, const at::Tensor& bias, int64_t row, const float* x) {
    const float* w = weight.data_ptr<float>() + row * weight.size(1);
    double sum = static_cast<double>(bias.data_ptr<float>()[row]);
    for (int64_t i = 0; i < weight.size(1); ++i) sum += static_cast<double>(w[i] * x[i]);
    return static_cast<float>(sum);
  }

  void run(float* x, int64_t frame, Buffer shape) const {
    const int64_t C = shape.channels, H = down.size(0);
    float* values = x + frame * shape.pixels() * C;
    float* mean = means.data_ptr<float>() + frame * C;
    float* inner = hidden.data_ptr<float>() + frame * H;
    float* gate = gates.data_ptr<float>() + frame * C;
    ops::channel_means({shape.pixels(), C, 0, C, values, sums.data_ptr<double>() + frame * C, mean});
    for (int64_t i = 0; i < H; ++i) inner[i] = std::max(dense(down, down_bias, i, mean), 0.0f);
    for (int64_t c = 0; c < C; ++c) gate[c] = 1 / (1 + std::exp(-dense(up, up_bias, c, inner)));
    ops::scale_rows({shape.pixels(), C, gate, nullptr, values});
  }
};

}  // namespace

void FramePlan::squeeze_excite(Buffer x, const at::Tensor& down, const at::Tensor& down_bias, const at::Tensor& up,
                               const at::Tensor& up_bias) {
  const at::Tensor per_frame = at::zeros({batch(), x.channels});
  const Excite excite{frozen(down),
                      frozen(down_bias),
                      frozen(up),
                      frozen(up_bias),
                      per_frame.to(at::kDouble),
                      per_frame.clone(),
                      at::zeros({batch(), down.size(0)}),
                      per_frame.clone()};
  step({x}, [this, x, excite] {
    at::parallel_for(0, batch(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) excite.run(at(x), i, x);
    });
  });
}

}  // namespace convssm::nn
