// Whole ConvS5 models against their convolutions alone: what everything that is not a convolution costs. The shapes are
// those that the model really runs, noted while it runs; each has tensors of its own.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/generator.h"
#include "bench/harness.h"
#include "bench/training_step.h"
#include "convssm/models/forecaster.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/depthwise.h"
#include "convssm/ops/flop_meter.h"
#include "convssm/ops/libtorch.h"

namespace convssm::bench {
namespace {

using ops::ConvolutionShape;

at::Tensor random_frames(at::IntArrayRef shape) { return at::randn(shape).contiguous(at::MemoryFormat::ChannelsLast); }

class LimitConvolution {
 public:
  explicit LimitConvolution(const ConvolutionShape& s)
      : stride_(s.stride),
        depthwise_(s.groups > 1),
        x_(random_frames({s.frames, s.in, s.height, s.width}).requires_grad_(s.input_gradient)),
        weight_(random_frames({s.out, s.in / s.groups, s.kernel_h, s.kernel_w}).requires_grad_(s.weight_gradient)) {
    if (s.bias) bias_ = at::randn({s.out}).requires_grad_(s.weight_gradient);
    if (s.input_gradient) wanted_.push_back(x_);
    if (s.weight_gradient) wanted_.push_back(weight_);
    if (s.weight_gradient && s.bias) wanted_.push_back(*bias_);
    if (!wanted_.empty()) g_ = at::randn_like(run_forward().detach());
  }

  void run() const {
    const at::Tensor y = run_forward();
    if (!wanted_.empty()) torch::autograd::grad({y}, wanted_, {g_});
  }

 private:
  at::Tensor run_forward() const {
    return depthwise_ ? ops::depthwise_conv2d(x_, weight_, bias_) : ops::conv2d(x_, weight_, bias_, stride_);
  }

  int64_t stride_;
  bool depthwise_;
  at::Tensor x_, weight_, g_;
  OptionalTensor bias_;
  std::vector<at::Tensor> wanted_;
};

// All of them, as the model runs them once.
class Convolutions {
 public:
  explicit Convolutions(const std::vector<ConvolutionShape>& shapes) : list_(shapes.begin(), shapes.end()) {}
  void run() const {
    for (const LimitConvolution& convolution : list_) convolution.run();
  }

 private:
  std::vector<LimitConvolution> list_;
};

std::vector<ConvolutionShape> noted(const std::function<void()>& action) {
  const ops::FlopMeter meter;
  action();
  return meter.convolutions();
}

void bench_generation(int rounds, const Report& report) {
  at::NoGradGuard no_grad;
  const BenchModel subject = make_bench_model("paper", "convs5");
  const models::State state = state_after(subject, 2);
  const Convolutions convolutions(noted([&] { models::forecaster_of(*subject.model).next(state, {}); }));
  const Generator next = make_generator(subject, state);
  report(compare("limit.generate.convs5.paper", "its convolutions alone; goal 0.8", rounds, next,
                 [&] { convolutions.run(); }));
}

void bench_training(const char* size, int64_t clip, const char* goal, int rounds, const Report& report) {
  const BenchModel subject = make_bench_model(size, "convs5");
  const at::Tensor video = subject.clip(clip);
  const Convolutions convolutions(noted([&] { subject.model->loss({video}, {}); }));
  TrainingStep step(subject, video);
  report(compare(
      fmt::format("limit.train.convs5.{}", size), fmt::format("its convolutions alone{}", goal), rounds,
      [&] { step.run(); }, [&] { convolutions.run(); }));
}

}  // namespace

void bench_limit(const Settings& settings, const Report& report) {
  const int rounds = settings.rounds;
  at::manual_seed(1);
  bench_training("mini", 51, "", rounds, report);
  bench_generation(rounds, report);
  bench_training("paper", 9, "; goal 0.75", std::max(3, rounds / 3), report);
}

}  // namespace convssm::bench
