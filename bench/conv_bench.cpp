// The 3x3 convolutions of the paper's model: Winograd's algorithm against oneDNN's direct one through libtorch, in time
// and in rounding error.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/harness.h"
#include "convssm/ops/winograd.h"
#include "convssm/ops/winograd_conv2d.h"

namespace convssm::bench {
namespace {

struct Shape {
  int64_t frames, size, in, out;
};

const std::vector<Shape> kShapes{{1, 16, 256, 256},  {1, 32, 128, 128}, {1, 64, 64, 64},   {20, 16, 256, 256},
                                 {20, 32, 128, 128}, {20, 64, 64, 64},  {150, 16, 32, 32}, {32, 8, 512, 2048}};

class Convolution {
 public:
  explicit Convolution(const Shape& s) {
    const auto nhwc = at::MemoryFormat::ChannelsLast;
    x_ = at::randn({s.frames, s.in, s.size, s.size}).contiguous(nhwc).requires_grad_(true);
    weight_ = (at::randn({s.out, s.in, 3, 3}) / std::sqrt(9.0 * static_cast<double>(s.in))).requires_grad_(true);
    direct_weight_ = weight_.detach().contiguous(nhwc).requires_grad_(true);
    g_ = at::randn({s.frames, s.out, s.size, s.size}).contiguous(nhwc);
  }

  at::Tensor winograd() const { return ops::winograd_conv2d(x_, weight_, {}); }
  at::Tensor direct() const { return at::conv2d(x_, direct_weight_, {}, 1, 1); }
  void train_winograd() const { torch::autograd::grad({winograd()}, {x_, weight_}, {g_}); }
  void train_direct() const { torch::autograd::grad({direct()}, {x_, direct_weight_}, {g_}); }

  // The largest difference from float64, relative to the largest value.
  double error(const at::Tensor& found) const {
    const at::Tensor exact = at::conv2d(x_.to(at::kDouble), weight_.to(at::kDouble), {}, 1, 1);
    return ((found - exact).abs().max() / exact.abs().max()).item<double>();
  }

 private:
  at::Tensor x_, weight_, direct_weight_, g_;
};

void bench_shape(const Shape& s, int rounds, const Report& report) {
  const Convolution conv(s);
  const std::string name = fmt::format("conv.{}x{}.{}-{}.x{}", s.size, s.size, s.in, s.out, s.frames);
  const char* direct = "oneDNN's direct convolution through libtorch";
  if (s.frames == 1) {
    at::NoGradGuard no_grad;
    report(compare(
        name, direct, rounds, [&] { conv.winograd(); }, [&] { conv.direct(); }));
  } else {
    report(compare(
        name + ".train", fmt::format("{}; forward and both gradients", direct), rounds, [&] { conv.train_winograd(); },
        [&] { conv.train_direct(); }));
  }
  at::NoGradGuard no_grad;
  Row error{name + ".error", conv.error(conv.winograd()), "relative", conv.error(conv.direct()), 0, 0, {}};
  error.what = "largest difference from float64, relative to the largest value; reference: direct";
  report(error);
}

}  // namespace

void bench_conv(const Settings& settings, const Report& report) {
  at::manual_seed(1);
  for (const Shape& shape : kShapes) {
    if (ops::winograd_takes(shape.in, shape.out)) bench_shape(shape, settings.rounds, report);
  }
}

}  // namespace convssm::bench
