// A training step of the pixel model with a ConvS5 core against its convolutions alone: what everything else costs. And
// the page faults of a step, against libtorch's default allocator.
#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/autograd.h>

#include <nlohmann/json.hpp>

#include "convssm/base/memory.h"
#include "convssm/bench/harness.h"
#include "convssm/models/registry.h"
#include "convssm/ops/adamw.h"
#include "convssm/ops/conv2d.h"

namespace convssm::bench {
namespace {

struct Size {
  const char* name;
  std::vector<int64_t> depths;  // of encoder and decoder
  int64_t features, layers, image, clips, frames;
};

// configs/mini/convs5.yaml; the paper's model on a few frames.
const Size kMini{"mini", {16, 32}, 32, 2, 32, 3, 49};
const Size kPaper{"paper", {64, 128, 256}, 256, 8, 64, 1, 12};

struct Convolution {
  int64_t in, out, kernel, size;
  bool with_bias, differentiate_input;
};

class List {
 public:
  void add(int64_t in, int64_t out, int64_t kernel, int64_t size, bool with_bias = true) {
    items.push_back({in, out, kernel, size, with_bias, !items.empty()});  // the pixels need no gradient
  }
  void add_block(int64_t in, int64_t out, int64_t size) {
    add(in, out, 3, size);
    add(out, out, 3, size);
    if (in != out) add(in, out, 1, size, false);
  }
  std::vector<Convolution> items;
};

// Those of nn/frame_coder.h around those of cores/convs5.h.
std::vector<Convolution> convolutions_of(const Size& s) {
  List list;
  int64_t size = s.image, channels = s.depths[0];
  list.add(1, channels, 3, size);
  for (size_t i = 0; i < s.depths.size(); ++i) {
    if (i > 0) size /= 2;
    list.add_block(channels, s.depths[i], size);
    channels = s.depths[i];
  }
  list.add(channels + 1, s.features, 1, size);
  for (int64_t i = 0; i < s.layers; ++i) {
    for (const bool with_bias : {false, false, true, true}) list.add(s.features, s.features, 3, size, with_bias);
  }
  channels = s.depths[0];
  list.add(s.features, channels, 3, size);
  for (size_t i = s.depths.size(); i-- > 0;) {
    if (i + 1 < s.depths.size()) size *= 2;
    list.add_block(channels, s.depths[i], size);
    channels = s.depths[i];
  }
  list.add(channels, 1, 1, size);
  return list.items;
}

// Forward and backward of one convolution; its tensors are made before.
struct Work {
  at::Tensor x, weight, bias, g;

  Work(const Convolution& c, int64_t frames) {
    const auto nhwc = [&](int64_t channels) {
      return at::randn({frames, channels, c.size, c.size}).contiguous(at::MemoryFormat::ChannelsLast);
    };
    x = nhwc(c.in).requires_grad_(c.differentiate_input);
    g = nhwc(c.out);
    weight = at::randn({c.out, c.in, c.kernel, c.kernel}).requires_grad_(true);
    if (c.with_bias) bias = at::randn({c.out}).requires_grad_(true);
  }

  void run() const {
    std::vector<at::Tensor> inputs{weight};
    if (x.requires_grad()) inputs.push_back(x);
    if (bias.defined()) inputs.push_back(bias);
    const at::Tensor y = ops::conv2d(x, weight, bias.defined() ? c10::make_optional(bias) : c10::nullopt);
    torch::autograd::grad({y}, inputs, {g});
  }
};

class Training {
 public:
  explicit Training(const Size& s) {
    const nlohmann::json coder = {{"depths", s.depths}};
    const nlohmann::json core = {
        {"name", "convs5"}, {"features", s.features}, {"state_size", s.features}, {"layers", s.layers}};
    model_ = models::make_model({{"name", "pixel"}, {"encoder", coder}, {"decoder", coder}, {"core", core}},
                                {1, s.image, s.image});
    video_ = at::rand({s.clips, s.frames + 1, 1, s.image, s.image}) * 2 - 1;
    for (const at::Tensor& p : model_->parameters()) moments_.push_back({at::zeros_like(p), at::zeros_like(p)});
  }

  void step() {
    std::vector<at::Tensor> parameters = model_->parameters();
    for (at::Tensor& p : parameters) p.mutable_grad() = at::Tensor();
    torch::autograd::backward({model_->loss(video_, {}).loss}, {});
    double norm = 0;
    for (const at::Tensor& p : parameters) norm += ops::square_sum(p.grad());
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters.size(); ++i) {
      ops::adamw_(parameters[i], parameters[i].grad(), moments_[i][0], moments_[i][1], {.lr = 1e-6},
                  norm > 1e12 ? 0.5 : 1);
    }
  }

 private:
  std::shared_ptr<models::Model> model_;
  at::Tensor video_;
  std::vector<std::array<at::Tensor, 2>> moments_;
};

void bench_size(const Size& s, int rounds, const Report& report) {
  at::manual_seed(1);
  Training training(s);
  std::vector<Work> alone;
  for (const Convolution& c : convolutions_of(s)) alone.emplace_back(c, s.clips * s.frames);
  report(compare(
      fmt::format("step.{}", s.name), "its convolutions alone; goal 0.75", rounds, [&] { training.step(); },
      [&] {
        for (const Work& work : alone) work.run();
      }));
}

// Of one step in steady state.
double faults_of(Training& training, c10::Allocator* allocator) {
  constexpr uint8_t kPriority = 255;
  c10::Allocator* before = c10::GetCPUAllocator();
  c10::SetCPUAllocator(allocator, kPriority);
  training.step();
  training.step();
  const uint64_t start = minor_faults();
  training.step();
  const uint64_t faults = minor_faults() - start;
  c10::SetCPUAllocator(before, kPriority);
  return static_cast<double>(faults);
}

void bench_faults(const Report& report) {
  Training training(kMini);
  const double kept = faults_of(training, c10::GetCPUAllocator());
  const double fresh = faults_of(training, c10::GetDefaultCPUAllocator());
  report({"memory.faults.step", kept, "faults", fresh, 0, 0,
          "page faults of a training step with libtorch's default allocator"});
}

}  // namespace

void bench_step(int rounds, const Report& report) {
  bench_size(kMini, rounds, report);
  bench_size(kPaper, std::min(rounds, 3), report);
  bench_faults(report);
}

}  // namespace convssm::bench
