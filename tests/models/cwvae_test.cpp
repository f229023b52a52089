// CW-VAE against an independent NumPy computation (tools/golden/make_cwvae.py), its gradients, sizes and initial values.
#include "convssm/models/cwvae/cwvae.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "convssm/ssm/initializers.h"
#include "tests/models/code_golden.h"
#include "tests/models/cwvae_golden.h"
#include "tests/support.h"

namespace convssm::models {
namespace {

using testing::CwvaeGolden;
using testing::distance;
using testing::expect_error;

void expect_losses(const CwvaeGolden& golden, const LossOutput& out, const std::string& prefix) {
  const double loss = golden.number(prefix + "loss");
  EXPECT_NEAR(out.loss.item<double>(), loss, 1e-9 * loss);
  size_t parts = 0;
  for (const auto& name : golden.file.names()) {
    const std::string rest = name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size()) : "";
    parts += rest == "nll" || rest.starts_with("kl_");
  }
  EXPECT_EQ(out.parts.size(), parts);
  for (const auto& [name, value] : out.parts) {
    const double expected = golden.number(prefix + name);
    EXPECT_NEAR(value.item<double>(), expected, 1e-9 * (1 + expected)) << name;
  }
}

class GoldenCwvae : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenCwvae, LossAndItsParts) {
  const CwvaeGolden golden(GetParam());
  expect_losses(golden, golden.model->loss_of(golden.clips(), golden.noise), "");
  EXPECT_EQ(parameter_count(*golden.model), golden.read("parameter_count").item<int64_t>());
  torch::NoGradGuard no_grad;
  expect_losses(golden, golden.model->loss_of(golden.clips(), golden.noise), "");
}

TEST_P(GoldenCwvae, OfTheMeans) {
  const CwvaeGolden golden(GetParam(), {{"mean_only", true}});
  expect_losses(golden, golden.model->loss(golden.clips(), {}), "means.");
}

TEST_P(GoldenCwvae, TheSameInFloat32) {
  const CwvaeGolden golden(GetParam());
  golden.model->to(at::kFloat);
  Clips clips = golden.clips();
  if (clips.video.defined()) clips.video = clips.video.to(at::kFloat);
  const double loss = golden.number("loss");
  EXPECT_NEAR(golden.model->loss_of(clips, golden.noise).loss.item<double>(), loss, 2e-6 * loss);
}

// Along a random direction of every parameter.
TEST_P(GoldenCwvae, GradientsAreThoseOfFiniteDifferences) {
  const CwvaeGolden golden(GetParam(), {{"kl_balance", 0}});
  const Clips clips = golden.clips();
  const auto loss = [&] { return golden.model->loss_of(clips, golden.noise).loss; };
  testing::expect_gradients(*golden.model, loss, 2e-6, 3e-6);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenCwvae, ::testing::Values("cwvae_plain", "cwvae_options", "cwvae_codes"),
                         [](const auto& i) { return i.param; });

class GoldenCwvaeFutures : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenCwvaeFutures, PosteriorsOfTheContextThenPriors) {
  const CwvaeGolden golden(GetParam());
  Cwvae& model = *golden.model;
  const Clips clips = golden.clips();
  const int64_t K = golden.read("context").item<int64_t>();
  const at::Tensor expected = golden.read("rollout").to(at::kDouble);
  const auto action = [&](int64_t t) { return clips.actions.select(1, t); };
  State state = model.start(data::frames_of(clips, 0, K), {});
  for (int64_t k = 0; k < expected.size(1); ++k) {
    const Forecast out = model.next(state, action(K + k));
    EXPECT_LT(distance(out.frame, expected.select(1, k)), 1e-6) << k;
    state = out.state;
  }
}

// A frame in the middle of a window is told after its forecast; the one before it stays unseen.
TEST_P(GoldenCwvaeFutures, ATrueFrameChangesTheWholeWindow) {
  const CwvaeGolden golden(GetParam());
  Cwvae& model = *golden.model;
  const Clips clips = golden.clips();
  const int64_t K = golden.read("context").item<int64_t>();
  const at::Tensor expected = golden.read("corrected").to(at::kDouble);
  const auto action = [&](int64_t t) { return clips.actions.select(1, t); };
  State state = model.start(data::frames_of(clips, 0, K), {});
  for (int64_t k = K; k < K + 2; ++k) state = model.next(state, action(k)).state;
  state = model.observe(state, clips.video.select(1, K + 1), action(K + 1));
  for (int64_t k = 0; k < expected.size(1); ++k) {
    const Forecast out = model.next(state, action(K + 2 + k));
    EXPECT_LT(distance(out.frame, expected.select(1, k)), 1e-6) << k;
    state = out.state;
  }
}

TEST_P(GoldenCwvaeFutures, PixelsThatWereNotMeasuredDoNotCount) {
  const CwvaeGolden golden(GetParam());
  Clips clips = golden.clips();
  clips.valid = golden.read("valid").to(at::kBool);
  expect_losses(golden, golden.model->loss_of(clips, golden.noise), "valid.");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenCwvaeFutures, ::testing::Values("cwvae_plain", "cwvae_options"),
                         [](const auto& i) { return i.param; });

// What of the divergence moves the prior alone: layers that nothing else reads.
TEST(Cwvae, BalanceSharesTheDivergence) {
  const auto gradient = [](double balance) {
    const CwvaeGolden golden("cwvae_plain", {{"kl_balance", balance}});
    golden.model->loss_of(golden.clips(), golden.noise).loss.backward();
    return golden.model->named_parameters()["hierarchy.level0.prior_mean.weight"].grad();
  };
  const at::Tensor whole = gradient(0);
  EXPECT_GT(testing::max_abs(whole), 1e-3);
  EXPECT_LT(distance(gradient(0.25), 0.75 * whole), 1e-12);
  EXPECT_EQ(testing::max_abs(gradient(1)), 0);
}

TEST(Cwvae, HasThePublishedSizes) {
  const ssm::WithoutValues without;
  const auto count = [](nlohmann::json options, int64_t channels) {
    options["name"] = "cwvae";
    return parameter_count(*make_model(options, {channels, 64, 64}));
  };
  EXPECT_EQ(count({}, 1), 12466817) << "Moving-MNIST, 12.5M";
  const int64_t minerl = count({{"stochastic", 100}, {"deterministic", 800}, {"embedding", 800}}, 3);
  EXPECT_NEAR(static_cast<double>(minerl) * 1e-6, 34.4, 0.05);
  const int64_t paper = count({{"stochastic", 20}, {"deterministic", 500}, {"embedding", 500}}, 1);
  EXPECT_NEAR(static_cast<double>(paper) * 1e-6, 20.1, 0.05);
}

TEST(Cwvae, NetworksFollowTheSizeOfFrames) {
  const cwvae::NetPlan published = cwvae::pixel_plan(3, 64, 64, 32);
  EXPECT_EQ(published.features, 1024);
  std::vector<int64_t> kernels, channels;
  for (const auto& layer : published.up) kernels.push_back(layer.kernel_h), channels.push_back(layer.out);
  EXPECT_EQ(kernels, (std::vector<int64_t>{5, 5, 6, 6}));
  EXPECT_EQ(channels, (std::vector<int64_t>{128, 64, 32, 3}));
  EXPECT_EQ(cwvae::pixel_plan(1, 32, 32, 32).down.size(), 3u);
  EXPECT_EQ(cwvae::pixel_plan(1, 128, 128, 32).features, 1024);
  EXPECT_EQ(cwvae::code_plan(256, 1024, 16, 16, 32).features, 1024);
  EXPECT_EQ(cwvae::code_plan(256, 1024, 16, 16, 32).down.size(), 3u);
  torch::NoGradGuard no_grad;
  for (const auto& [height, width] : {std::pair{4, 4}, {7, 30}, {12, 12}, {32, 32}, {33, 48}, {64, 64}}) {
    const cwvae::NetPlan plan = cwvae::pixel_plan(2, height, width, 2);
    const at::Tensor x = at::zeros({3, 2, height, width});
    const at::Tensor features = cwvae::DownNet(plan, Stream(1))(x);
    EXPECT_EQ(features.sizes(), (std::vector<int64_t>{3, plan.features}));
    EXPECT_EQ(cwvae::UpNet(5, plan, Stream(1))(at::zeros({3, 5})).sizes(), x.sizes()) << height << " x " << width;
  }
  expect_error([] { cwvae::pixel_plan(1, 3, 64, 32); }, {"at least 4 x 4", "3 x 64"});
}

TEST(Cwvae, BeginsAsPublished) {
  const auto model =
      make_model({{"name", "cwvae"}, {"deterministic", 10}, {"embedding", 6}, {"filters", 2}}, {1, 16, 16});
  for (const auto& item : model->named_parameters()) {
    if (item.key().find("bias") == std::string::npos) continue;
    EXPECT_EQ(testing::max_abs(item.value()), 0) << item.key();
  }
  const at::Tensor u = model->named_parameters()["hierarchy.level1.gru.hidden"].detach().to(at::kDouble);
  EXPECT_LT(distance(u.t().mm(u), at::eye(10, at::kDouble)), 1e-6);
  const at::Tensor w = model->named_parameters()["hierarchy.level1.gru.input"].detach();
  const double limit = std::sqrt(6.0 / (6 + 30));
  EXPECT_LE(testing::max_abs(w), limit);
  EXPECT_NEAR(w.std().item<double>(), limit / std::sqrt(3.0), 0.08 * limit);
}

TEST(Cwvae, NoiseIsThatOfTheStream) {
  const CwvaeGolden golden("cwvae_plain");
  const auto loss = [&](uint64_t seed) {
    return golden.model->loss(golden.clips(), {"model", 0, 1, Stream(seed)}).loss.item<double>();
  };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
}

TEST(Cwvae, RefusesWhatItCannotDo) {
  const auto made = [](nlohmann::json options) {
    options["name"] = "cwvae";
    return [options] { make_model(options, {1, 16, 16}); };
  };
  expect_error(made({{"levels", 0}}), {"levels", "0"});
  expect_error(made({{"levels", 9}, {"factor", 9}}), {"factor^(levels-1)"});
  expect_error(made({{"use_obs", {1, 0}}}), {"use_obs", "3 levels", "2"});
  expect_error(made({{"use_obs", {0, 0, 0}}}), {"use_obs", "none would see"});
  expect_error(made({{"sigma", 0}}), {"sigma", "above 0"});
  expect_error(made({{"kl_balance", 1.5}}), {"kl_balance", "[0,1]"});
  expect_error(made({{"beta", {1, 1}}}), {"beta", "3 levels"});
  expect_error(made({{"stocastic", 3}}), {"stocastic", "stochastic"});
  const CwvaeGolden golden("cwvae_plain");
  Clips clips = golden.clips();
  clips.timing.dt = at::ones({2, 7});
  expect_error([&] { golden.model->loss(clips, {}); }, {"knows no time"});
  expect_error([&] { golden.model->loss({at::zeros({1, 2, 1, 4, 4})}, {}); }, {"[B,T,1,14,16]"});
  expect_error([&] { golden.model->start({}, {}); }, {"at least 1 frame"});
}

}  // namespace
}  // namespace convssm::models
