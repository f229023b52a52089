// Latent FDM against an independent NumPy computation (tools/golden/make_latent_fdm.py), its gradients, symmetry, training sets and
// initial values.
#include "convssm/models/latent_fdm/latent_fdm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "convssm/models/latent_fdm/index_sets.h"
#include "convssm/ssm/initializers.h"
#include "tests/models/code_golden.h"
#include "tests/models/latent_fdm_golden.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;
using testing::FdmGolden;
using testing::randn;

class GoldenLatentFdm : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenLatentFdm, LossOfGivenNoise) {
  const FdmGolden golden(GetParam());
  const double loss = golden.number("loss");
  const LossOutput out = golden.model->loss_of(golden.clips(), golden.example());
  EXPECT_NEAR(out.loss.item<double>(), loss, 1e-9 * loss);
  const double given = golden.read("observed").to(at::kDouble).mean().item<double>();
  ASSERT_EQ(out.parts.size(), 1u);
  EXPECT_EQ(out.parts[0].first, "noise_error");
  EXPECT_NEAR(out.parts[0].second.item<double>(), loss / (1 - given), 1e-9 * loss);
  EXPECT_EQ(parameter_count(*golden.model), golden.read("parameter_count").item<int64_t>());
}

TEST_P(GoldenLatentFdm, TheDenoiserItself) {
  const FdmGolden golden(GetParam());
  const FdmExample e = golden.example();
  const at::Tensor video = golden.clips().video,
                   bars = golden.read("alpha_bars").to(at::kDouble).index_select(0, e.steps);
  const latent_fdm::DiffusionOptions diffusion = LatentFdmOptions::from_json(golden.section).diffusion;
  EXPECT_LT(distance(torch::tensor(latent_fdm::alpha_bars(diffusion), at::kDouble), golden.read("alpha_bars")), 1e-14);
  latent_fdm::NoisyFrames in;
  in.clean = video.flatten(0, 1).index_select(0, (e.clip * video.size(1) + e.numbers).flatten()).view(e.noise.sizes());
  const at::Tensor a = bars.view({-1, 1, 1, 1, 1});
  in.x = a.sqrt() * in.clean + (1 - a).sqrt() * e.noise;
  in.given = e.given, in.padding = e.padding, in.numbers = e.numbers, in.steps = e.steps;
  if (golden.has_actions()) {
    const at::Tensor rows =
        golden.read("actions").flatten().index_select(0, (e.clip * video.size(1) + e.numbers).flatten());
    in.actions = at::embedding(golden.model->named_parameters()["actions"], at::where(rows < 0, 3, rows));
  }
  EXPECT_LT(distance(golden.model->denoiser()(in), golden.read("eps")), 1e-9);
}

TEST_P(GoldenLatentFdm, TheSameInFloat32) {
  const FdmGolden golden(GetParam());
  golden.model->to(at::kFloat);
  Clips clips = golden.clips();
  clips.video = clips.video.to(at::kFloat);
  FdmExample e = golden.example();
  e.noise = e.noise.to(at::kFloat);
  const double loss = golden.number("loss");
  EXPECT_NEAR(golden.model->loss_of(clips, e).loss.item<double>(), loss, 1e-5 * loss);
}

// Two blocks of frames, the second one looks at the first.
TEST_P(GoldenLatentFdm, FuturesOfGivenNoise) {
  const std::map<std::string, nlohmann::json> samplers = {
      {"ddpm", {{"sampler", "ddpm"}, {"clamp", 1}}},
      {"ddim", {{"sampler", "ddim"}, {"clamp", 0}}},
      {"ddim_eta", {{"sampler", "ddim"}, {"eta", 0.7}, {"clamp", 1.5}}},
  };
  for (const auto& [name, sampling] : samplers) {
    const FdmGolden golden(GetParam(), sampling);
    const Clips clips = data::rows_of(golden.clips(), 0, 1);
    const int64_t context = golden.read("context").item<int64_t>(), S = golden.section["sampling"]["frames"];
    const at::Tensor expected = golden.read("future." + name);
    State state = golden.model->start(data::frames_of(clips, 0, context), {});
    for (int64_t k = 0; k < expected.size(0); k += S) {
      const at::Tensor coming =
          clips.actions.defined() ? clips.actions.slice(1, context + k, context + k + S) : at::Tensor();
      const Forecast out = golden.model->next_frames(state, coming, S);
      EXPECT_LT(distance(out.frame[0], expected.slice(0, k, k + S)), 1e-8) << name << " " << k;
      state = out.state;
    }
  }
}

// Along a random direction of every parameter.
TEST_P(GoldenLatentFdm, GradientsAreThoseOfFiniteDifferences) {
  const FdmGolden golden(GetParam());
  const Clips clips = golden.clips();
  const FdmExample example = golden.example();
  const auto loss = [&] { return golden.model->loss_of(clips, example).loss; };
  loss().backward();
  for (auto& item : golden.model->named_parameters()) {
    testing::expect_gradient(item.key(), item.value(), item.value().grad(), [&] { return loss().item<double>(); });
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLatentFdm, ::testing::Values("latent_fdm_linear", "latent_fdm_cosine"),
                         [](const auto& i) { return i.param; });

latent_fdm::NoisyFrames some_frames(const latent_fdm::DenoiserOptions& o, int64_t B, int64_t K) {
  latent_fdm::NoisyFrames in;
  in.x = randn({B, K, o.frame_channels, o.height, o.width}, 1), in.clean = randn(in.x.sizes(), 2);
  in.given = randn({B, K}, 3) > 0.5, in.padding = (randn({B, K}, 4) > 0.7).logical_and(in.given.logical_not());
  in.numbers = (randn({B, K}, 5) * 20).to(at::kLong), in.steps = at::tensor({3, 700}, at::kLong);
  in.actions = 0.5 * randn({B * K, o.embedding()}, 6);
  return in;
}

latent_fdm::Denoiser some_denoiser(const latent_fdm::DenoiserOptions& o) {
  latent_fdm::Denoiser net(o, Stream(1));
  torch::NoGradGuard no_grad;
  uint64_t seed = 10;
  for (auto& p : net->parameters()) p.add_(0.1 * randn(p.sizes(), ++seed).to(at::kFloat));
  net->to(at::kDouble);
  return net;
}

TEST(FdmDenoiser, FramesHaveNoOrder) {
  torch::NoGradGuard no_grad;
  const latent_fdm::DenoiserOptions o{2, 8, 4, 4, {1, 2}, 1, {8}, 2, 2};
  latent_fdm::Denoiser net = some_denoiser(o);
  const latent_fdm::NoisyFrames in = some_frames(o, 2, 7);
  const at::Tensor out = net(in), order = at::tensor({4, 0, 6, 2, 1, 5, 3}, at::kLong);
  latent_fdm::NoisyFrames other = in;
  for (at::Tensor* x : {&other.x, &other.clean, &other.given, &other.padding, &other.numbers})
    *x = x->index_select(1, order);
  other.actions = in.actions.view({2, 7, -1}).index_select(1, order).flatten(0, 1);
  EXPECT_LT(distance(net(other), out.index_select(1, order)), 1e-12);
  other.numbers = other.numbers + 12345;  // only how far they are apart
  EXPECT_LT(distance(net(other), out.index_select(1, order)), 1e-12);
  other.numbers = other.numbers * 2;
  EXPECT_GT(distance(net(other), out.index_select(1, order)), 1e-4);
}

// But for the norm in front of attention, whose statistics are of all frames, as published.
TEST(FdmDenoiser, PaddingIsNotAttendedTo) {
  torch::NoGradGuard no_grad;
  latent_fdm::FrameFacts facts;
  const at::Tensor numbers = at::tensor({0, 3, 4, 9}, at::kLong).view({1, 4}),
                   padding = at::tensor({0, 1, 0, 1}, at::kLong).view({1, 4}).to(at::kBool);
  set_pairs(facts, numbers, padding, at::kDouble);
  const at::Tensor seen = at::tensor({1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1}, at::kLong).view({4, 4});
  EXPECT_TRUE(facts.apart.squeeze().logical_not().to(at::kLong).equal(seen));
  EXPECT_NEAR(facts.distances.view({4, 4, 3})[1][0][0].item<double>(), std::log(4), 1e-12);
  EXPECT_EQ(facts.distances.view({4, 4, 3})[1][0][1].item<double>(), 0);
  EXPECT_NEAR(facts.distances.view({4, 4, 3})[0][3][1].item<double>(), std::log(10), 1e-12);
  EXPECT_EQ(facts.distances.view({4, 4, 3})[2][2][2].item<double>(), 1);
}

TEST(FdmDenoiser, NoisyValuesOfGivenFramesAreNotSeen) {
  torch::NoGradGuard no_grad;
  const latent_fdm::DenoiserOptions o{2, 4, 4, 4, {1, 2}, 1, {4}, 2, 2};
  latent_fdm::Denoiser net = some_denoiser(o);
  latent_fdm::NoisyFrames in = some_frames(o, 2, 5);
  const at::Tensor out = net(in), given = in.given.view({2, 5, 1, 1, 1});
  in.x = at::where(given, randn(in.x.sizes(), 8), in.x);
  in.clean = at::where(given, in.clean, randn(in.x.sizes(), 9));
  EXPECT_TRUE(net(in).equal(out));
}

TEST(FdmDenoiser, BeginsAsPublished) {
  const auto model =
      make_model({{"name", "latent_fdm"}, {"channels", 8}, {"attention", {8}}, {"frames", 4}}, {1, 16, 16});
  const auto params = model->named_parameters();
  for (const char* zero : {"out.weight", "out.bias", "middle0.conv1.weight", "middle_attention.temporal.out.weight",
                           "middle_attention.temporal.position_q.out.weight", "middle_attention.spatial.out.bias"}) {
    EXPECT_EQ(testing::max_abs(params[std::string("denoiser.") + zero]), 0) << zero;
  }
  for (const char* drawn : {"stem.weight", "middle0.conv0.weight", "time1.weight"}) {
    const at::Tensor w = params[std::string("denoiser.") + drawn].detach();
    const double limit = 1 / std::sqrt(static_cast<double>(w.numel() / w.size(0)));
    EXPECT_LE(testing::max_abs(w), limit) << drawn;
    EXPECT_NEAR(w.std().item<double>(), limit / std::sqrt(3.0), 0.15 * limit) << drawn;
  }
  const Clips clips{0.5 * randn({2, 9, 1, 16, 16}, 1).to(at::kFloat)};
  const LossOutput out = model->loss(clips, {"model", 0, 1, Stream(1)});
  EXPECT_NEAR(out.parts[0].second.item<double>(), 1, 0.05) << "it says nothing";
}

// Evenly spaced, within the clip, none twice; spacings and numbers of every size occur.
TEST(FdmIndexSets, FramesAreEvenlySpaced) {
  Stream random(1);
  std::map<size_t, int> counts;
  for (int i = 0; i < 4000; ++i) {
    const std::vector<int64_t> frames = latent_fdm::draw_frames(10, 37, random);
    ASSERT_GE(frames.front(), 0);
    ASSERT_LT(frames.back(), 37);
    ++counts[frames.size()];
    for (size_t k = 2; k < frames.size(); ++k) {
      const int64_t gap = frames[k] - frames[k - 1], first = frames[1] - frames[0];
      ASSERT_GE(gap, 1);
      ASSERT_LE(std::abs(gap - first), 1);
    }
  }
  for (size_t s = 1; s <= 10; ++s) EXPECT_NEAR(counts[s], 400, 90) << s;
}

TEST(FdmIndexSets, FillKFramesAndMarkPaddingAlone) {
  Stream random(2);
  int with_padding = 0, without_given = 0;
  for (const auto& [K, T] : {std::pair{10, 37}, {8, 8}, {8, 3}, {2, 1}, {20, 300}}) {
    for (int i = 0; i < 500; ++i) {
      const latent_fdm::IndexSet set = latent_fdm::draw_index_set(K, T, random);
      ASSERT_EQ(set.frames.size(), static_cast<size_t>(K));
      ASSERT_EQ(set.given.size(), set.frames.size());
      ASSERT_EQ(set.padding.size(), set.frames.size());
      std::set<int64_t> own;
      int64_t latents = 0, padding = 0, given = 0;
      for (size_t k = 0; k < set.frames.size(); ++k) {
        ASSERT_GE(set.frames[k], 0);
        ASSERT_LT(set.frames[k], T);
        ASSERT_FALSE(set.given[k] == 1 && set.padding[k] == 1);
        if (set.padding[k] == 0) {
          ASSERT_TRUE(own.insert(set.frames[k]).second) << "a frame twice";
        }
        padding += set.padding[k], given += set.given[k];
        latents += set.given[k] == 0 && set.padding[k] == 0;
      }
      ASSERT_GE(latents, 1);
      with_padding += padding > 0, without_given += given == 0;
    }
  }
  EXPECT_GT(with_padding, 500);
  EXPECT_GT(without_given, 100);
  EXPECT_LT(without_given, 2000);
}

TEST(LatentFdm, ExamplesAreThoseOfTheStream) {
  const FdmGolden golden("latent_fdm_linear");
  const FdmExample a = golden.model->draw_example(3, 9, Stream(1)), b = golden.model->draw_example(3, 9, Stream(1)),
                   c = golden.model->draw_example(3, 9, Stream(2));
  EXPECT_TRUE(a.numbers.equal(b.numbers) && a.noise.equal(b.noise) && a.steps.equal(b.steps));
  EXPECT_FALSE(a.numbers.equal(c.numbers) && a.steps.equal(c.steps));
  EXPECT_FALSE(a.noise.equal(c.noise));
  EXPECT_TRUE(a.clip.eq(at::arange(3).unsqueeze(1)).logical_xor(a.padding).all().item<bool>())
      << "padding: another clip";
  EXPECT_TRUE(golden.model->draw_example(1, 9, Stream(1)).clip.eq(0).all().item<bool>()) << "alone: its own";
  const auto loss = [&](uint64_t seed) {
    return golden.model->loss(golden.clips(), {"model", 0, 1, Stream(seed)}).loss.item<double>();
  };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
}

TEST(LatentFdm, PixelsThatWereNotMeasuredDoNotCount) {
  const FdmGolden golden("latent_fdm_linear");
  Clips clips = golden.clips();
  clips.valid = at::ones_like(clips.video, at::kBool);
  EXPECT_EQ(golden.model->loss_of(clips, golden.example()).loss.item<double>(),
            golden.model->loss_of(golden.clips(), golden.example()).loss.item<double>());
  clips.valid.zero_();
  EXPECT_EQ(golden.model->loss_of(clips, golden.example()).loss.item<double>(), 0);
}

nlohmann::json square_section() {
  return {{"name", "latent_fdm"},
          {"tokenizer", testing::squares(8, 8)},
          {"frames", 4},
          {"channels", 4},
          {"attention", {2}},
          {"multipliers", {1, 2}},
          {"heads", 2},
          {"groups", 2},
          {"sampling", {{"steps", 3}}}};
}

TEST(LatentFdm, LatentsAreScaledByTheFirstBatchOfATraining) {
  const auto model = make_model(square_section(), {1, 8, 8});
  const at::Tensor video = (0.1 * randn({2, 6, 1, 8, 8}, 1)).to(at::kFloat).clamp(-1, 1);
  const at::Tensor scale = model->named_buffers()["scale"], frames = model->named_buffers()["clip_frames"];
  model->eval();
  model->loss({video}, {"model", 0, 1, Stream(1)});
  EXPECT_EQ(scale.item<double>(), 0);
  model->train();
  model->loss({video}, {"model", 0, 1, Stream(1)});
  EXPECT_NEAR(scale.item<double>(), 1 / 0.3, 0.2);
  EXPECT_EQ(frames.item<int64_t>(), 6);
  const at::Tensor first = scale.clone();
  model->loss({5 * video.slice(1, 0, 3)}, {"model", 1, 1, Stream(2)});
  EXPECT_TRUE(scale.equal(first)) << "once";
  EXPECT_EQ(frames.item<int64_t>(), 6);
  Forecaster& forecaster = forecaster_of(*model);
  const State state = forecaster.start({video}, {});
  EXPECT_LT(distance(at::pixel_shuffle(state.get("frames"), 2).slice(1, 0, 2), video.slice(1, 4) * 3 * first), 1e-5);
  EXPECT_EQ(model->as_tokenizer(), model->tokenizer_part().tokenizer);
  EXPECT_EQ(learned_count(*model) + 1, parameter_count(*model)) << "the tokenizer is stored and does not learn";
}

TEST(LatentFdm, HasTheQuotedSizes) {
  const ssm::WithoutValues without;
  const auto count = [](const nlohmann::json& multipliers, int64_t blocks, const nlohmann::json& attention, int64_t c) {
    return parameter_count(*make_model({{"name", "latent_fdm"},
                                        {"channels", c},
                                        {"multipliers", multipliers},
                                        {"blocks", blocks},
                                        {"attention", attention}},
                                       {4, 16, 16}));
  };
  EXPECT_EQ(count({1, 2, 3}, 1, {16}, 128), 31342212);
  EXPECT_EQ(count({1, 2, 2, 2}, 1, {8, 4}, 128), 32718468);
  EXPECT_EQ(count({1, 2, 4}, 2, {8, 4}, 128), 87063556);
  EXPECT_EQ(count({1, 2, 2}, 1, {8, 4}, 64), 6463300);
}

TEST(LatentFdm, RefusesWhatItCannotDo) {
  const auto made = [](nlohmann::json options) {
    options["name"] = "latent_fdm";
    return [options] { make_model(options, {1, 16, 16}); };
  };
  expect_error(made({{"frames", 1}}), {"frames", "1"});
  expect_error(made({{"channels", 7}}), {"channels", "even", "7"});
  expect_error(made({{"multipliers", {1, 1, 1, 1, 1, 1}}}), {"halve the 16 x 16"});
  expect_error(made({{"attention", {5}}}), {"heights that occur", "16 down to 4", "5"});
  expect_error(made({{"channels", 10}}), {"heads must divide the 30 channels"});
  expect_error(made({{"sampling", {{"scheme", "hierarchy"}}}}), {"hierarchy-2", "'hierarchy'"});
  expect_error(made({{"sampling", {{"frames", 20}}}}), {"frames", "20"});
  expect_error(made({{"sampling", {{"steps", 2000}}}}), {"steps", "2000"});
  expect_error(made({{"sampling", {{"eta", 2}}}}), {"eta", "[0,1]"});
  expect_error(made({{"sampling", {{"sampler", "euler"}}}}), {"ddpm or ddim", "euler"});
  expect_error(made({{"sampling", {{"temperature", 1}}}}), {"temperature"});
  expect_error(made({{"diffusion", {{"schedule", "sine"}}}}), {"linear or cosine", "sine"});
  expect_error(made({{"tokenizer",
                      {{"name", "vqgan"},
                       {"frames", {{"channels", 1}, {"height", 16}, {"width", 16}}},
                       {"features", 8},
                       {"multipliers", {1, 1}},
                       {"latent", 8},
                       {"blocks", 1},
                       {"quantizer", {{"size", 8}, {"features", 4}}},
                       {"discriminator", {{"weight", 0}}}}}}),
               {"continuous", "kl"});
  const FdmGolden golden("latent_fdm_linear");
  Clips clips = golden.clips();
  clips.timing.dt = at::ones({2, 9});
  expect_error([&] { golden.model->loss(clips, {}); }, {"knows no time"});
  expect_error([&] { golden.model->loss({at::zeros({1, 2, 1, 4, 4})}, {}); }, {"[B,T,2,4,4]"});
  expect_error([&] { golden.model->loss({}, {}); }, {"needs the video"});
  expect_error([&] { golden.model->check_data({{2, 4, 4}, {3, 0}, {16, 2, 2}}); }, {"codes", "takes frames"});
  expect_error([&] { golden.model->check_data({{2, 4, 4}, {}, {}}); }, {"takes actions"});
}

}  // namespace
}  // namespace convssm::models
