// One ConvS5 layer, forward and backward, against its four convolutions alone through libtorch on channels_last frames:
// what everything that is not a convolution costs. And the layer with dynamics that depend on the input, against itself without.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/harness.h"
#include "convssm/cores/convs5.h"
#include "convssm/ops/allocator.h"

namespace convssm::bench {
namespace {

constexpr int64_t kFrames = 64, kSize = 16;

at::Tensor frames(int64_t channels) {
  return at::randn({kFrames, channels, kSize, kSize}).contiguous(at::MemoryFormat::ChannelsLast);
}

struct BareConvolution {
  at::Tensor x, weight, bias, g;

  BareConvolution(int64_t in, int64_t out, bool with_bias) : x(frames(in).requires_grad_(true)), g(frames(out)) {
    weight = at::randn({out, in, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_(true);
    if (with_bias) bias = at::randn({out}).requires_grad_(true);
  }

  void run() const {
    const auto y = bias.defined() ? at::conv2d(x, weight, bias, 1, 1) : at::conv2d(x, weight, {}, 1, 1);
    std::vector<at::Tensor> inputs{x, weight};
    if (bias.defined()) inputs.push_back(bias);
    torch::autograd::grad({y}, inputs, {g});
  }
};

// A layer of this width, there and back; inputs as a layer inside a network meets them, channels together in memory.
std::function<void()> layer_run(int64_t width, cores::InputDynamics dynamics) {
  cores::ConvS5 layer(cores::ConvS5Options{.features = width, .state_size = width, .dynamics = dynamics});
  const auto x = frames(width).view({kFrames, 1, width, kSize, kSize}).requires_grad_(true);
  const auto g = frames(width).view({kFrames, 1, width, kSize, kSize});
  std::vector<at::Tensor> inputs = layer->parameters();
  inputs.push_back(x);
  return [layer, x, g, inputs]() mutable { torch::autograd::grad({layer->forward(x).y}, inputs, {g}); };
}

void bench_dynamics(int64_t width, int rounds, const Report& report) {
  const auto fixed = layer_run(width, cores::InputDynamics::fixed);
  for (const auto dynamics :
       {cores::InputDynamics::selective, cores::InputDynamics::gated, cores::InputDynamics::liquid}) {
    report(compare(fmt::format("layer.convs5.{}.{}", width, cores::name(dynamics)), "the layer of fixed dynamics",
                   rounds, layer_run(width, dynamics), fixed));
  }
}

void bench_width(int64_t width, int rounds, const Report& report) {
  at::manual_seed(1);
  const std::vector<BareConvolution> convolutions{
      {width, width, false}, {width, width, false}, {width, width, true}, {width, width, true}};
  const auto run_layer = layer_run(width, cores::InputDynamics::fixed);
  report(compare(fmt::format("layer.convs5.{}", width), "its convolutions alone; goal 0.75", rounds, run_layer, [&] {
    for (const auto& convolution : convolutions) convolution.run();
  }));

  ops::reset_allocator_peak();
  const size_t before = ops::allocator_statistics().used;
  run_layer();
  const double input = static_cast<double>(convolutions[0].x.nbytes());
  Row memory;
  memory.name = fmt::format("layer.convs5.{}.memory", width);
  memory.value = static_cast<double>(ops::allocator_statistics().peak_used - before) / input;
  memory.unit = "x input";
  memory.reference = 1;
  memory.ratio = 1 / memory.value;
  memory.what = fmt::format("the input of {:.1f} MB; tensors of 1 MiB and more at the peak", input / 1e6);
  report(memory);
  bench_dynamics(width, rounds, report);
}

}  // namespace

void bench_layer(const Settings& settings, const Report& report) {
  const int rounds = settings.rounds;
  bench_width(64, rounds, report);
  bench_width(256, rounds, report);
}

}  // namespace convssm::bench
