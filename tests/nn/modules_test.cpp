// The small modules against plain tensor operations in float64, their gradients, their initial values.
#include "convssm/nn/modules.h"

#include "tests/nn/plain.h"

namespace convssm::nn::testing {
namespace {

template <class Module>
Module prepared(Module module) {
  module->to(at::kDouble);
  scatter(*module);
  return module;
}

TEST(Conv, IsASumOfShiftedFrames) {
  for (const int64_t kernel : {1, 2, 3, 5}) {
    for (const bool with_bias : {false, true}) {
      auto module = prepared(Conv(3, 4, kernel, Stream(1), with_bias));
      EXPECT_EQ(module->bias.defined(), with_bias);
      const at::Tensor x = randn({2, 3, 5, 6}, 1);
      EXPECT_LT(distance(module(x), conv(x, module->weight, module->bias)), 1e-12) << kernel;
    }
  }
}

// float32 takes other kernels (Winograd's for multiples of a vector).
TEST(Conv, InFloat32) {
  for (const int64_t channels : {5, 16, 32}) {
    Conv module(channels, channels, 3, Stream(1));
    scatter(*module);
    const at::Tensor x = randn({2, channels, 6, 9}, 1).to(at::kFloat);
    const at::Tensor exact = conv(x.to(at::kDouble), module->weight.to(at::kDouble), module->bias.to(at::kDouble));
    EXPECT_LT(distance(module(x), exact), 1e-5 * max_abs(exact)) << channels;
  }
}

TEST(Dense, IsAProductOverChannels) {
  auto module = prepared(Dense(5, 3, Stream(1)));
  for (const at::Tensor& x : {randn({4, 5}, 1), randn({2, 5, 3, 4}, 1)}) {
    EXPECT_LT(distance(module(x), dense(x, module->weight, module->bias)), 1e-12);
  }
}

TEST(Norm, IsTheDefinition) {
  auto module = prepared(Norm(6));
  const at::Tensor w = module->weight, b = module->bias, x = 2 * randn({2, 6, 3, 4}, 1) + 1, y = randn({2, 6, 3, 4}, 2);
  for (const int64_t groups : {1, 2, 6}) {
    EXPECT_LT(distance(module->group_norm(x, groups), group_norm(x, groups, w, b)), 1e-12);
    const auto gelu = ops::Activation::gelu;
    EXPECT_LT(distance(module->group_norm(x, groups, gelu), activated(group_norm(x, groups, w, b), gelu)), 1e-12);
  }
  EXPECT_LT(distance(module->layer_norm(x), layer_norm(x, w, b)), 1e-12);
  EXPECT_LT(distance(module->add_layer_norm(x, y), layer_norm(x + y, w, b)), 1e-12);
  const at::Tensor rows = randn({7, 6}, 3);
  EXPECT_LT(distance(module->layer_norm(rows), layer_norm(rows, w, b)), 1e-12);
}

TEST(Modules, GradientsAreThoseOfFiniteDifferences) {
  const at::Tensor x = randn({2, 4, 3, 3}, 1), y = randn({2, 4, 3, 3}, 2), g = randn({2, 4, 3, 3}, 3);
  auto conv_module = prepared(Conv(4, 4, 3, Stream(1)));
  auto dense_module = prepared(Dense(4, 4, Stream(1)));
  auto norm = prepared(Norm(4));
  const auto error = [&](const torch::nn::Module& module, const std::function<at::Tensor()>& run) {
    std::vector<at::Tensor> inputs = module.parameters();
    inputs.push_back(x);
    return gradient_error([&] { return (run() * g).sum(); }, inputs);
  };
  EXPECT_LT(error(*conv_module, [&] { return conv_module(x); }), 1e-8);
  EXPECT_LT(error(*dense_module, [&] { return dense_module(x); }), 1e-8);
  EXPECT_LT(error(*norm, [&] { return norm->group_norm(x, 2, ops::Activation::swish); }), 1e-8);
  EXPECT_LT(error(*norm, [&] { return norm->layer_norm(x); }), 1e-8);
  EXPECT_LT(error(*norm, [&] { return norm->add_layer_norm(x, y); }), 1e-8);
}

TEST(Modules, InitialValues) {
  const auto std_of = [](const at::Tensor& x) { return x.std().item<double>(); };
  const auto reach = [](const at::Tensor& x) { return (max_abs(x) / x.std()).item<double>(); };
  const Conv conv_module(20, 50, 3, Stream(1));
  EXPECT_NEAR(std_of(conv_module->weight), std::sqrt(1.0 / 180), 2e-3);
  EXPECT_EQ(max_abs(conv_module->bias), 0);
  const Dense cut(100, 100, Stream(1), 2), whole(100, 100, Stream(1), 2, false);
  EXPECT_NEAR(std_of(cut->weight), std::sqrt(2.0 / 100), 3e-3);
  EXPECT_NEAR(std_of(whole->weight), std::sqrt(2.0 / 100), 3e-3);
  EXPECT_LT(reach(cut->weight), 2.4);
  EXPECT_GT(reach(whole->weight), 3);
  const Norm norm(3);
  EXPECT_TRUE(norm->weight.equal(at::ones({3})) && norm->bias.equal(at::zeros({3})));
  EXPECT_TRUE(Conv(3, 3, 3, Stream(2))->weight.equal(Conv(3, 3, 3, Stream(2))->weight));
  EXPECT_FALSE(Conv(3, 3, 3, Stream(2))->weight.equal(Conv(3, 3, 3, Stream(3))->weight));
}

TEST(Modules, FittingGroupsDivideTheChannels) {
  EXPECT_EQ(fitting_groups(64, 32), 32);
  EXPECT_EQ(fitting_groups(12, 5), 4);
  EXPECT_EQ(fitting_groups(7, 6), 1);
  EXPECT_EQ(fitting_groups(3, 32), 3);
  expect_error([] { fitting_groups(4, 0); }, {"positive", "4 and 0"});
  const auto told = take_fewer_groups();
  const auto times = [&](const std::string& line) { return std::count(told.begin(), told.end(), line); };
  EXPECT_EQ(times("group norm: 12 channels cannot be cut into 5 groups, 4 are taken"), 1);
  EXPECT_EQ(times("group norm: 64 channels cannot be cut into 32 groups, 32 are taken"), 0);
  EXPECT_TRUE(take_fewer_groups().empty());
}

TEST(Modules, FiniteCheckLooksAgainWhenSomethingChanged) {
  torch::NoGradGuard no_grad;
  Dense module(3, 2, Stream(1));
  FiniteCheck check;
  check("Test", *module);
  module->bias.data_ptr<float>()[1] = NAN;  // unseen
  EXPECT_EQ(error_text([&] { check("Test", *module); }), "");
  check.forget();
  expect_error([&] { check("Test", *module); }, {"[Test]", "bias"});
  module->bias.zero_();
  check("Test", *module);
  module->weight[1][2] = INFINITY;
  expect_error([&] { check("Test", *module); }, {"[Test]", "weight"});
}

TEST(Modules, BadUse) {
  expect_error([] { Conv(0, 1, 3, Stream(1)); }, {"[Conv]", "in 0"});
  expect_error([] { Conv(1, 1, 0, Stream(1)); }, {"[Conv]", "kernel 0"});
  expect_error([] { Dense(1, -1, Stream(1)); }, {"[Dense]", "out -1"});
  expect_error([] { Norm(0); }, {"[Norm]", "0"});
}

}  // namespace
}  // namespace convssm::nn::testing
