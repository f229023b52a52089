// As a metric, without gradients: threads take a few pairs of frames each through the whole network instead of sharing
// every layer. As a loss: the same formula in differentiable operations.
#include "convssm/metrics/lpips.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "convssm/metrics/frames.h"
#include "convssm/metrics/lpips_kernels.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

// How many frames a thread puts through the network at once: all threads get as many, and a thread's activations stay
// near 20 MB. Fewer would leave tensors to malloc whose page faults cost up to a quarter of the time.
int64_t frames_at_once(LpipsBackbone backbone, int64_t frames, int64_t plane) {
  const int64_t pixels = (backbone == LpipsBackbone::vgg ? 4 : 16) * 64 * 64;
  const int64_t most = std::max<int64_t>(1, pixels / plane), threads = at::get_num_threads();
  const int64_t rounds = (frames + threads * most - 1) / (threads * most);
  return (frames + threads * rounds - 1) / (threads * rounds);
}

void check_frame_size(const char* metric, int64_t channels, int64_t height, int64_t width) {
  ops::require(metric, channels == 1 || channels == 3, "frames must have 1 or 3 channels, got {}", channels);
  ops::require(metric, height >= lpips_least_size && width >= lpips_least_size,
               "frames must be at least {0}x{0}, or the last layers see nothing, got {1}x{2}", lpips_least_size, height,
               width);
}

at::Tensor as_rgb(const at::Tensor& x) { return x.expand({x.size(0), 3, x.size(2), x.size(3)}); }

// f / (|f| + 1e-10) over channels. A pixel without any activation stays zero: the root is kept away from zero, where it
// has no derivative.
at::Tensor unit(const at::Tensor& f) {
  const at::Tensor squares = f.square().sum(1, true);
  return f / (squares.masked_fill(squares == 0, 1).sqrt() + 1e-10);
}

at::Tensor layer_distance(const at::Tensor& f, const at::Tensor& g, const at::Tensor& head) {
  return ((unit(f) - unit(g)).square() * head.view({1, -1, 1, 1})).sum(1).mean({1, 2});
}

// `f` holds the activations of all truths, then those of all forecasts -> out [pairs].
void layer_distances(const at::Tensor& f, const at::Tensor& head, double* out) {
  const at::Tensor features = f.contiguous(at::MemoryFormat::ChannelsLast);
  const int64_t pairs = f.size(0) / 2, pixels = f.size(2) * f.size(3), size = pixels * f.size(1);
  const float* x = features.data_ptr<float>();
  const float* y = x + pairs * size;
  const float* weight = head.data_ptr<float>();
  at::parallel_for(0, pairs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[i] = lpips_sum({x + i * size, y + i * size, weight, pixels, f.size(1)}) / static_cast<double>(pixels);
    }
  });
}

}  // namespace

Lpips::Lpips(LpipsBackbone backbone, const std::string& features_path, const std::string& heads_path)
    : backbone_(backbone), network_(backbone, features_path) {
  const WeightFile file(backbone, heads_path);
  for (const auto& [tensor, shape] : lpips_head_tensors(backbone)) {
    heads_.push_back(file.read(tensor, shape).view({-1}));
  }
  shift_ = at::tensor({-0.030, -0.088, -0.188}, at::kFloat).view({1, 3, 1, 1});
  scale_ = at::tensor({0.458, 0.448, 0.450}, at::kFloat).view({1, 3, 1, 1});
}

at::Tensor Lpips::operator()(const at::Tensor& truth, const at::Tensor& forecast) const {
  return layers(truth, forecast).sum(0);
}

at::Tensor Lpips::layers(const at::Tensor& truth, const at::Tensor& forecast) const {
  const FramePairs pairs = check_f01_frames(name(), truth, forecast);
  check_frame_size(name(), pairs.channels, pairs.height, pairs.width);
  ops::require_like(name(), "the weights", shift_, pairs.truth);
  const std::vector<int64_t> shape{pairs.frames, pairs.channels, pairs.height, pairs.width};
  const at::Tensor x = pairs.truth.view(shape), y = pairs.forecast.view(shape);
  const int64_t layer_count = static_cast<int64_t>(heads_.size());
  at::Tensor out = at::empty({layer_count, pairs.frames}, at::kDouble);

  const int64_t at_once = frames_at_once(backbone_, pairs.frames, pairs.plane());
  const int64_t batches = (pairs.frames + at_once - 1) / at_once;
  // Each thread takes whole batches; the operations inside then run on that thread alone.
  at::parallel_for(0, batches, 1, [&](int64_t batch, int64_t end) {
    const at::NoGradGuard no_grad;
    for (; batch < end; ++batch) {
      const int64_t first = batch * at_once, count = std::min(at_once, pairs.frames - first);
      const at::Tensor both = at::cat({x.narrow(0, first, count), y.narrow(0, first, count)});
      network_.run((as_rgb(both) * 2 - 1 - shift_).div_(scale_), [&](size_t k, const at::Tensor& f) {
        layer_distances(f, heads_[k], out.data_ptr<double>() + static_cast<int64_t>(k) * pairs.frames + first);
      });
    }
  });
  std::vector<int64_t> out_shape{layer_count};
  out_shape.insert(out_shape.end(), pairs.leading.begin(), pairs.leading.end());
  return out.view(out_shape);
}

std::vector<at::Tensor> Lpips::activations(const at::Tensor& x) const {
  std::vector<at::Tensor> taps;
  network_.run((as_rgb(x) - shift_) / scale_, [&](size_t, const at::Tensor& f) { taps.push_back(f); });
  return taps;
}

at::Tensor Lpips::loss(const at::Tensor& x, const at::Tensor& y) const {
  ops::require_dims(name(), "x", x, 4, "[N,C,H,W]");
  ops::require_shape(name(), "y", y, x.sizes());
  check_frame_size(name(), x.size(1), x.size(2), x.size(3));
  ops::require_like(name(), "x", x, shift_);
  ops::require_like(name(), "y", y, shift_);
  // One after the other, so that a target without gradients costs no backward.
  const auto f = activations(x), g = activations(y);
  at::Tensor total;
  for (size_t k = 0; k < heads_.size(); ++k) {
    const at::Tensor distance = layer_distance(f[k], g[k], heads_[k]);
    total = k == 0 ? distance : total + distance;
  }
  return total;
}

Lpips Lpips::to(const at::TensorOptions& options) const {
  Lpips moved = *this;
  moved.network_ = network_.to(options);
  for (at::Tensor& head : moved.heads_) head = head.to(options);
  moved.shift_ = shift_.to(options);
  moved.scale_ = scale_.to(options);
  return moved;
}

}  // namespace convssm::metrics
