// AdamW against its formula, and its moments through a file.
#include "convssm/train/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "convssm/ops/memory_meter.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::train {
namespace {

using testing::distance;
using testing::randn;

std::shared_ptr<models::Model> make() {
  return models::make_model({{"encoder", {{"depths", {4}}}},
                             {"decoder", {{"depths", {4}}}},
                             {"core", {{"name", "convs5"}, {"features", 4}, {"state_size", 4}}}},
                            {1, 4, 4});
}

void set_gradients(models::Model& model, uint64_t seed) {
  for (const at::Tensor& p : model.parameters()) p.mutable_grad() = randn(p.sizes(), seed++).to(at::kFloat);
}

TEST(Optimizer, IsAdamWithDecoupledDecayOfAllParameters) {
  PlayerOptions o;
  o.beta1 = 0.8, o.beta2 = 0.9, o.eps = 1e-6, o.weight_decay = 0.1;
  const auto model = make();
  Optimizer optimizer(model->players()[0], o);
  std::vector<at::Tensor> p, m, v;
  for (const auto& x : model->parameters()) {
    p.push_back(x.detach().to(at::kDouble).clone());
    m.push_back(at::zeros_like(p.back()));
    v.push_back(at::zeros_like(p.back()));
  }
  for (int t = 1; t <= 3; ++t) {
    const double lr = 0.01 * t;
    const auto version = model->parameters()[0]._version();
    set_gradients(*model, 100 * t);
    for (size_t i = 0; i < p.size(); ++i) {
      const at::Tensor g = model->parameters()[i].grad().to(at::kDouble);
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      const at::Tensor adam =
          (m[i] / (1 - std::pow(o.beta1, t))) / ((v[i] / (1 - std::pow(o.beta2, t))).sqrt() + o.eps);
      p[i] = p[i] - lr * (adam + o.weight_decay * p[i]);
    }
    optimizer.update(lr);
    EXPECT_GT(model->parameters()[0]._version(), version);
  }
  for (size_t i = 0; i < p.size(); ++i) EXPECT_LT(distance(model->parameters()[i].to(at::kDouble), p[i]), 1e-6);
}

TEST(Optimizer, GoesOnExactlyFromAFile) {
  const ScratchFolder scratch;
  const auto a = make(), b = make();
  Optimizer first(a->players()[0], {}), second(b->players()[0], {});
  set_gradients(*a, 1);
  set_gradients(*b, 1);
  first.update(0.1);
  second.update(0.1);
  io::stream_safetensors(scratch.path("o.safetensors"), first.arrays());
  Optimizer third(b->players()[0], {});
  third.load(io::SafetensorsFile(scratch.path("o.safetensors")));
  set_gradients(*a, 2);
  set_gradients(*b, 2);
  first.update(0.05);
  third.update(0.05);
  for (size_t i = 0; i < a->parameters().size(); ++i) EXPECT_TRUE(a->parameters()[i].equal(b->parameters()[i]));
}

// A large tensor, one that is no multiple of a block, and one without values.
TEST(AveragedWeights, ChangePlacesWithoutASecondCopy) {
  PlayerOptions o;
  o.ema = 0.9;
  models::Player player{"model", {}};
  std::vector<at::Tensor> trained, averages;
  for (const int64_t size : {(1 << 20) + 7, 5, 0}) {
    at::Tensor p = randn({size}, 1).to(at::kFloat);
    player.parameters.emplace_back(std::to_string(size), p.requires_grad_(true));
    p.mutable_grad() = at::ones({size});
    averages.push_back(p.detach().clone());
  }
  std::vector<Optimizer> optimizers;
  optimizers.emplace_back(player, o);
  optimizers[0].update(0.1);
  for (size_t i = 0; i < averages.size(); ++i) {
    trained.push_back(player.parameters[i].second.detach().clone());
    averages[i].lerp_(trained[i], 1 - 0.1);
  }
  const auto version = player.parameters[0].second._version();
  ops::MemoryMeter meter;
  {
    const AveragedWeights averaged(optimizers);
    for (size_t i = 0; i < averages.size(); ++i) EXPECT_TRUE(player.parameters[i].second.equal(averages[i])) << i;
    EXPECT_GT(player.parameters[0].second._version(), version) << "who keeps something for a version would not see it";
  }
  for (size_t i = 0; i < averages.size(); ++i) EXPECT_TRUE(player.parameters[i].second.equal(trained[i])) << i;
  EXPECT_LE(meter.peak(), 2u << 20);
  EXPECT_GT(player.parameters[0].second._version(), version + 1);
}

TEST(Optimizer, FindsTheFirstBadGradient) {
  const auto model = make();
  set_gradients(*model, 1);
  double sum = 0;
  for (const auto& p : model->parameters()) sum += p.grad().to(at::kDouble).square().sum().item<double>();
  EXPECT_NEAR(Optimizer(model->players()[0], {}).gradient_norm(), std::sqrt(sum), 1e-5 * std::sqrt(sum));
  EXPECT_EQ(first_bad_gradient(*model), "");
  model->named_parameters()[3].value().mutable_grad().view({-1})[0] = NAN;
  model->named_parameters()[5].value().mutable_grad().view({-1})[0] = INFINITY;
  EXPECT_EQ(first_bad_gradient(*model), model->named_parameters()[3].key());
  EXPECT_FALSE(std::isfinite(Optimizer(model->players()[0], {}).gradient_norm()));
}

TEST(Optimizer, ScalesGradientsAndLeavesParametersWithoutOne) {
  const auto a = make(), b = make();
  Optimizer first(a->players()[0], {}), second(b->players()[0], {});
  set_gradients(*a, 1);
  set_gradients(*b, 1);
  for (const auto& p : b->parameters()) p.mutable_grad().mul_(0.25);
  for (const auto& model : {a, b}) model->parameters()[2].mutable_grad() = at::Tensor();
  const at::Tensor untouched = a->parameters()[2].detach().clone();
  first.update(0.1, 0.25);
  second.update(0.1);
  for (size_t i = 0; i < a->parameters().size(); ++i) EXPECT_TRUE(a->parameters()[i].equal(b->parameters()[i])) << i;
  EXPECT_TRUE(a->parameters()[2].equal(untouched));
  first.clear_gradients();
  EXPECT_FALSE(a->parameters()[0].grad().defined());
}

}  // namespace
}  // namespace convssm::train
