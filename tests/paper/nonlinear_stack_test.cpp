// Section 2.2: one SSM layer has linear dynamics; with pointwise nonlinearities between them, stacked layers represent
// nonlinear systems. The system here is y_k = u_{k-1} u_{k-2} on white noise, which no linear function of the past
// explains at all. A small training of each shows it.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "convssm/cores/convs5.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using testing::randn;

constexpr int64_t kLength = 24, kClips = 48, kStackFeatures = 8;

// Noise [L,B,1,1,1] and the product of its last two values, zero before the start.
struct System {
  at::Tensor u, y;
};

System product_of_delays(uint64_t seed) {
  const at::Tensor u = randn({kLength, kClips, 1, 1, 1}, seed);
  const at::Tensor padded = at::cat({at::zeros({2, kClips, 1, 1, 1}, at::kDouble), u});
  return {u, padded.slice(0, 1, kLength + 1) * padded.slice(0, 0, kLength)};
}

// The least mean squared error of any y_k = constant + sum over j of h_j u_{k-j}, by the normal equations.
double best_linear_error(const System& s) {
  std::vector<at::Tensor> columns{at::ones({kLength * kClips}, at::kDouble)};
  for (int64_t lag = 0; lag < kLength; ++lag) {
    const at::Tensor before = at::zeros({lag, kClips, 1, 1, 1}, at::kDouble);
    columns.push_back(at::cat({before, s.u.slice(0, 0, kLength - lag)}).flatten());
  }
  const at::Tensor m = at::stack(columns, 1), y = s.y.flatten();
  const at::Tensor h = at::linalg_solve(at::mm(m.t(), m), at::mv(m.t(), y));
  return at::square(at::mv(m, h) - y).mean().item<double>();
}

// The core between a linear entrance and a linear exit, [L,B,1,1,1] to the same.
struct Network {
  std::shared_ptr<torch::nn::Module> core;
  std::function<at::Tensor(const at::Tensor&)> run;  // [L,B,C,1,1] to the same
  at::Tensor in, out, bias;

  at::Tensor operator()(const at::Tensor& u) const { return (run(u * in) * out).sum(2, true) + bias; }
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all{in, out, bias};
    for (const auto& p : core->parameters()) all.push_back(p);
    return all;
  }
};

Network between_linear_maps(std::shared_ptr<torch::nn::Module> core, std::function<at::Tensor(const at::Tensor&)> run) {
  core->to(at::kDouble);
  Network net{std::move(core), std::move(run), randn({kStackFeatures, 1, 1}, 1), 0.3 * randn({kStackFeatures, 1, 1}, 2),
              at::zeros({1}, at::kDouble)};
  for (at::Tensor* p : {&net.in, &net.out, &net.bias}) p->requires_grad_(true);
  return net;
}

ConvS5Options stack_options(int64_t layers) {
  ConvS5Options o{
      .features = kStackFeatures, .state_size = 16, .layers = layers, .kernel_b = 1, .kernel_c = 1, .kernel_d = 1};
  o.dt_min = 0.05;
  o.dt_max = 1;
  o.activation_block = nn::BlockKind::half_glu;
  o.seed = 4;
  return o;
}

// State spaces one behind the other, and nothing else.
struct LinearLayersImpl : torch::nn::Module {
  explicit LinearLayersImpl(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      all.push_back(register_module("layer" + std::to_string(i), ConvS5SSM(stack_options(1), Stream(4, "layer", i))));
    }
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = x.flatten(0, 1);
    for (auto& layer : all) y = layer->forward(y, kLength, {}, {}).first;
    return y.view(x.sizes());
  }
  std::vector<ConvS5SSM> all;
};

Network linear_layers(int64_t count) {
  const auto layers = std::make_shared<LinearLayersImpl>(count);
  return between_linear_maps(layers, [layers](const at::Tensor& x) { return layers->forward(x); });
}

Network stack_of(int64_t layers) {
  ConvS5 core(stack_options(layers));
  return between_linear_maps(core.ptr(), [core](const at::Tensor& x) mutable { return core->forward(x).y; });
}

void train_network(const Network& net, const System& s, int steps, double rate) {
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(rate));
  for (int i = 0; i < steps; ++i) {
    for (auto& group : optimizer.param_groups())
      static_cast<torch::optim::AdamOptions&>(group.options()).lr(rate * 0.5 * (1 + std::cos(M_PI * i / steps)));
    optimizer.zero_grad();
    const at::Tensor loss = at::square(net(s.u) - s.y).mean();
    loss.backward();
    optimizer.step();
  }
}

double error_on(const Network& net, const System& s) {
  torch::NoGradGuard no_grad;
  return at::square(net(s.u) - s.y).mean().item<double>();
}

// A linear layer learns what is linear, which is next to nothing: its error comes to that of the best linear function and
// not below. Two of them with nothing between are linear too.
TEST(NonlinearStack, LinearLayersStayAtTheBestLinearError) {
  const System s = product_of_delays(7);
  const double power = at::square(s.y).mean().item<double>(), bound = best_linear_error(s);
  EXPECT_GT(bound, 0.95 * power);
  for (const int64_t layers : {1, 2}) {
    const Network net = linear_layers(layers);
    train_network(net, s, 100, 0.01);
    EXPECT_GT(error_on(net, s), bound) << layers;
    EXPECT_LT(error_on(net, s), 1.02 * bound) << layers;
  }
}

TEST(NonlinearStack, FitsTheProductAlsoOnClipsItHasNotSeen) {
  const System s = product_of_delays(7), fresh = product_of_delays(8);
  const Network net = stack_of(2);
  EXPECT_GT(error_on(net, s), 0.5);
  train_network(net, s, 250, 0.01);
  EXPECT_LT(error_on(net, s), 0.1 * best_linear_error(s));
  EXPECT_LT(error_on(net, fresh), 0.3 * best_linear_error(fresh));
}

}  // namespace
}  // namespace convssm::cores
