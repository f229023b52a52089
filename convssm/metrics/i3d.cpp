// Batch norm is folded into the convolutions, the three 1x1 layers that read the input of a Mixed block are one, and
// each branch writes straight into its part of the block's output. Channels are padded to whole vectors of zeros. Grey
// clips need a third of the first layer: its three kernels are summed.
#include "convssm/metrics/i3d.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "convssm/io/checksum.h"
#include "convssm/metrics/feature_store.h"
#include "convssm/metrics/i3d_engine.h"
#include "convssm/metrics/i3d_layout.h"
#include "convssm/metrics/i3d_stream.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

using Pads = I3dEngine::Pads;
using Folded = I3dWeights::Folded;

// Channels that fill up the last block: zero kernels and biases, so zero frames.
Folded padded(const Folded& unit) {
  const int64_t out = i3d_padded(unit.kernel.size(0)) - unit.kernel.size(0);
  const int64_t in = i3d_padded(unit.kernel.size(1)) - unit.kernel.size(1);
  return {at::constant_pad_nd(unit.kernel, {0, 0, 0, 0, 0, 0, 0, in, 0, out}),
          at::constant_pad_nd(unit.bias, {0, out})};
}

I3dEngine::Convolution convolution(I3dEngine& engine, const I3dWeights& weights, const I3dUnit& unit) {
  const Folded folded = padded(weights.folded(unit));
  return {engine, folded.kernel, folded.bias, unit.stride};
}

// The three 1x1 convolutions that read the block's input are one: reduce1, reduce2 and branch 0.
I3dEngine::Convolution entrance(I3dEngine& engine, const I3dWeights& weights, const I3dMixed& mixed) {
  const Folded a = padded(weights.folded(mixed.reduce1)), b = padded(weights.folded(mixed.reduce2)),
               c = padded(weights.folded(mixed.branch0));
  return {engine, at::cat({a.kernel, b.kernel, c.kernel}), at::cat({a.bias, b.bias, c.bias}), 1};
}

class Mixed {
 public:
  Mixed(I3dEngine& engine, const I3dWeights& weights, const I3dMixed& mixed)
      : reduce1_(i3d_padded(mixed.reduce1.out) / i3d_block()),
        reduce2_(i3d_padded(mixed.reduce2.out) / i3d_block()),
        out_{mixed.branch0.out / i3d_block(), mixed.branch1.out / i3d_block(), mixed.branch2.out / i3d_block(),
             mixed.branch3.out / i3d_block()},
        entrance_(entrance(engine, weights, mixed)),
        branch1_(convolution(engine, weights, mixed.branch1)),
        branch2_(convolution(engine, weights, mixed.branch2)),
        branch3_(convolution(engine, weights, mixed.branch3)),
        pool_(engine, {3, 1, 3, 1}) {}

  // Time is padded here in the 3x3 layers: a window with neighbours comes with one frame of each.
  at::Tensor run(const at::Tensor& x, Pads time) {
    const int64_t frames = x.size(1) + time.front + time.back - 2;
    const at::Tensor inner = entrance_.run(x, {});
    const at::Tensor out = at::empty({out_[0] + out_[1] + out_[2] + out_[3], frames, x.size(2), x.size(3), x.size(4)});
    int64_t begin = 0;
    const auto next = [&](int64_t blocks) { return out.narrow(0, (begin += blocks) - blocks, blocks); };
    next(out_[0]).copy_(inner.narrow(0, reduce1_ + reduce2_, out_[0]).narrow(1, 1 - time.front, frames));
    branch1_.run(inner.narrow(0, 0, reduce1_), time, next(out_[1]));
    branch2_.run(inner.narrow(0, reduce1_, reduce2_), time, next(out_[2]));
    branch3_.run(pool_.run(x, time), {}, next(out_[3]));
    return out;
  }

 private:
  int64_t reduce1_, reduce2_, out_[4];  // in blocks of channels
  I3dEngine::Convolution entrance_, branch1_, branch2_, branch3_;
  I3dEngine::MaxPool pool_;
};

using Layer = std::variant<I3dEngine::Convolution, I3dEngine::MaxPool, Mixed>;

// The means over 7 x 7 of the frames [t,1024] -> logits. The average over pairs of frames and the mean over the pairs,
// both linear, are one weighted mean: the first and the last frame are in one pair, the others in two.
at::Tensor head(const at::Tensor& frames, const Folded& last) {
  const int64_t steps = frames.size(0);
  const at::Tensor mean = (frames.narrow(0, 0, steps - 1).sum(0) + frames.narrow(0, 1, steps - 1).sum(0)) /
                          (2.0 * static_cast<double>(steps - 1));
  return at::mv(last.kernel.view({last.kernel.size(0), -1}).to(at::kDouble), mean) + last.bias.to(at::kDouble);
}

}  // namespace

struct I3d::Network {
  Network(const I3dWeights& weights, const I3dOptions& chosen, FeatureStore kept)
      : options(chosen), store(std::move(kept)) {
    for (const I3dStage& stage : i3d_stages()) add(weights, stage);
    last = weights.folded(i3d_last_unit());
  }

  void add(const I3dWeights& weights, const I3dStage& stage) {
    if (const auto* unit = std::get_if<I3dUnit>(&stage)) {
      times.push_back({unit->kernel, unit->stride});
      if (layers.empty()) {
        // Three equal channels are one with the sum of the three kernels.
        const Folded first = weights.folded(*unit);
        grey.emplace(engine, first.kernel.sum(1, true), first.bias, unit->stride);
        layers.emplace_back(I3dEngine::Convolution(engine, first.kernel, first.bias, unit->stride));
      } else {
        layers.emplace_back(convolution(engine, weights, *unit));
      }
    } else if (const auto* pool = std::get_if<I3dPool>(&stage)) {
      times.push_back({pool->time_kernel, pool->time_stride});
      layers.emplace_back(I3dEngine::MaxPool(engine, *pool));
    } else {
      times.push_back({3, 1});
      layers.emplace_back(Mixed(engine, weights, std::get<I3dMixed>(stage)));
    }
  }

  at::Tensor logits(const at::Tensor& clip);

  at::Tensor run(size_t index, const at::Tensor& x, Pads time) {
    if (index == 0 && x.size(0) == 1) return grey->run(x, time);
    return std::visit([&](auto& layer) { return layer.run(x, time); }, layers[index]);
  }

  I3dOptions options;
  FeatureStore store;
  I3dEngine engine;
  std::vector<TimeKernel> times;
  std::vector<Layer> layers;
  std::optional<I3dEngine::Convolution> grey;  // the first layer for frames of one channel
  Folded last;
};

namespace {

FeatureStore make_store(const std::string& weights, const I3dOptions& options) {
  if (options.features.empty()) return {"", ""};
  const char* resize = options.resize == I3dResize::tensorflow1 ? "" : "half-pixel-";
  return {options.features, fmt::format("i3d-{}{}", resize, io::file_checksum(weights))};
}

}  // namespace

I3d::I3d(const std::string& weights, const I3dOptions& options) {
  ops::require("fvd_i3d", options.window >= 1, "the window must be at least 1 frame, got {}", options.window);
  network_ = std::make_unique<Network>(I3dWeights(weights), options, make_store(weights, options));
}

I3d::I3d(I3d&&) noexcept = default;
I3d& I3d::operator=(I3d&&) noexcept = default;
I3d::~I3d() = default;

at::Tensor I3d::logits(const at::Tensor& clip) const {
  check_i3d_clip(clip);
  const int64_t frames = clip.size(0);
  ops::require("fvd_i3d", frames >= i3d_fewest_frames,
               "clip must have at least {} frames, got {}: the network halves time three times and then averages over "
               "pairs of what is left, so that shorter clips have no features to speak of",
               i3d_fewest_frames, frames);
  const at::NoGradGuard no_grad;
  return network_->store.of(clip, [&] { return network_->logits(clip); });
}

at::Tensor I3d::Network::logits(const at::Tensor& clip) {
  const int64_t frames = clip.size(0);
  std::vector<at::Tensor> means;
  I3dStream stream(
      times, frames,
      [&](size_t layer, const at::Tensor& x, int64_t front, int64_t back) {
        return run(layer, x, {front, back});
      },
      [&](const at::Tensor& x) {  // [1024/b,t,7,7,b]
        means.push_back(x.to(at::kDouble).mean(at::IntArrayRef{2, 3}).permute({1, 0, 2}).flatten(1));
      });
  for (int64_t begin = 0; begin < frames; begin += options.window) {
    const int64_t count = std::min(options.window, frames - begin);
    stream.push(i3d_frames(clip.narrow(0, begin, count), options.resize));
  }
  return head(at::cat(means), last).to(at::kFloat);
}

}  // namespace convssm::metrics
