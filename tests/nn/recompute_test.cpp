// Running a part again for its gradients: the same numbers as keeping everything, and only then.
#include "convssm/nn/recompute.h"

#include "convssm/nn/modules.h"
#include "tests/nn/plain.h"

namespace convssm::nn::testing {
namespace {

// Two outputs of three inputs, one of which may be missing.
struct Part {
  Dense layer{3, 3, Stream(1)};
  int runs = 0;

  Tensors operator()(const Tensors& in, bool random = false) {
    ++runs;
    at::Tensor y = at::tanh(layer(in[0])) * in[1];
    if (in[2].defined()) y = y + in[2].square();
    if (random) y = y * at::rand(y.sizes(), y.options());
    return {y, y.sum(1)};
  }
};

struct Run {
  Tensors outputs, gradients;
};

// With gradients of inputs and parameters; `third` may be undefined.
Run run(bool again, const at::Tensor& third, bool random = false) {
  auto part = std::make_shared<Part>();
  part->layer->to(at::kDouble);
  Tensors inputs{randn({2, 3}, 1), randn({2, 3}, 2), third};
  Tensors wanted = part->layer->parameters();
  for (const at::Tensor& input : inputs) {
    if (input.defined()) wanted.push_back(input.detach().requires_grad_(true));
  }
  inputs = {wanted[2], wanted[3], third.defined() ? wanted[4] : third};
  at::manual_seed(7);
  const RecomputeScope scope(again);
  const auto f = [part, random](const Tensors& in) { return (*part)(in, random); };
  Run found{recompute({part->layer.get()}, inputs, f), {}};
  EXPECT_EQ(part->runs, 1);
  const at::Tensor loss = (found.outputs[0] * randn({2, 3}, 4)).sum() + found.outputs[1].square().sum();
  found.gradients = torch::autograd::grad({loss}, wanted);
  EXPECT_EQ(part->runs, again ? 2 : 1);
  found.outputs.push_back(at::rand({1}));  // what is drawn after it is the same too
  return found;
}

void expect_same(const Run& a, const Run& b) {
  for (size_t i = 0; i < a.outputs.size(); ++i) EXPECT_TRUE(a.outputs[i].equal(b.outputs[i])) << "output " << i;
  for (size_t i = 0; i < a.gradients.size(); ++i) EXPECT_TRUE(a.gradients[i].equal(b.gradients[i])) << "gradient " << i;
}

TEST(Recompute, GivesTheSameBits) {
  expect_same(run(false, {}), run(true, {}));
  expect_same(run(false, randn({2, 3}, 3)), run(true, randn({2, 3}, 3)));
}

TEST(Recompute, DrawsTheSameRandomNumbers) { expect_same(run(false, {}, true), run(true, {}, true)); }

TEST(Recompute, GradientsAreThoseOfFiniteDifferences) {
  auto part = std::make_shared<Part>();
  part->layer->to(at::kDouble);
  Tensors inputs = part->layer->parameters();
  const at::Tensor x = randn({2, 3}, 1), y = randn({2, 3}, 2);
  inputs.insert(inputs.end(), {x, y});
  const RecomputeScope scope(true);
  const auto f = [part](const Tensors& in) { return (*part)(in); };
  const auto loss = [&] { return recompute({part->layer.get()}, {x, y, {}}, f)[0].sin().sum(); };
  EXPECT_LT(gradient_error(loss, inputs), 1e-8);
}

TEST(Recompute, WithoutGradientsOrOutsideOfAScopeItRunsOnce) {
  auto part = std::make_shared<Part>();
  const auto f = [part](const Tensors& in) { return (*part)(in); };
  const Tensors inputs{at::ones({2, 3}), at::ones({2, 3}), {}};
  {
    torch::NoGradGuard no_grad;
    const RecomputeScope scope(true);
    EXPECT_FALSE(recompute({part->layer.get()}, inputs, f)[0].requires_grad());
  }
  recompute({part->layer.get()}, inputs, f)[0].sum().backward();
  EXPECT_EQ(part->runs, 2);
}

TEST(Recompute, ScopesNest) {
  auto part = std::make_shared<Part>();
  const auto f = [part](const Tensors& in) { return (*part)(in); };
  const Tensors inputs{at::ones({2, 3}), at::ones({2, 3}), {}};
  const auto runs = [&] {
    part->runs = 0;
    recompute({part->layer.get()}, inputs, f)[0].sum().backward();
    return part->runs;
  };
  const RecomputeScope outer(true);
  {
    const RecomputeScope inner(false);
    EXPECT_EQ(runs(), 1);
  }
  EXPECT_EQ(runs(), 2);
}

TEST(Recompute, HasNoSecondDerivative) {
  auto part = std::make_shared<Part>();
  const at::Tensor x = at::ones({2, 3}).requires_grad_(true);
  const RecomputeScope scope(true);
  const auto f = [part](const Tensors& in) { return (*part)(in); };
  const at::Tensor y = recompute({part->layer.get()}, {x, at::ones({2, 3}), {}}, f)[0];
  expect_error([&] { torch::autograd::grad({y.sum()}, {x}, {}, true, true); }, {"second derivative"});
}

}  // namespace
}  // namespace convssm::nn::testing
