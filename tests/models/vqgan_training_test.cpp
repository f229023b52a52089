// How the VQ-GAN learns: the losses of its two players, the weight between them, what moves and what is said.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <set>

#include "convssm/models/vqgan/vqgan.h"
#include "tests/models/tiny_vqgan.h"

namespace convssm::models {
namespace {

using nlohmann::json;
using testing::distance;
using testing::expect_error;
using testing::golden_vqgan;
using testing::noise_video;
using testing::tiny_vqgan;
using testing::VqGanGolden;

TEST(VqGan, DiscriminatorEqualsPyTorch) {
  const VqGanGolden golden;
  const auto model = golden_vqgan(golden, at::kDouble);
  auto* discriminator = dynamic_cast<nn::PatchDiscriminatorImpl*>(model->named_children()["discriminator"].get());
  ASSERT_NE(discriminator, nullptr);
  const at::Tensor x = golden.read("x").to(at::kDouble);
  torch::NoGradGuard no_grad;
  EXPECT_LT(distance(discriminator->forward(x).to(at::kFloat), golden.read("disc_train")), 1e-6);
  discriminator->forward(x, true);
  discriminator->eval();
  EXPECT_LT(distance(discriminator->forward(x).to(at::kFloat), golden.read("disc_eval")), 1e-6);
}

LossContext at_step(const std::string& player, int64_t step, uint64_t seed = 1) {
  return {player, step, 100, Stream(seed)};
}

std::map<std::string, double> parts_of(const LossOutput& out) {
  std::map<std::string, double> parts;
  for (const auto& [name, value] : out.parts) parts[name] = value.item<double>();
  return parts;
}

TEST(VqGan, PartsAddUpToTheLoss) {
  const auto model = make_model(tiny_vqgan({{"codebook_weight", 0.7}}), {3, 16, 16});
  model->train();
  const Clips clips{noise_video({2, 3, 3, 16, 16}, 1)};
  const LossOutput early = model->loss(clips, at_step("autoencoder", 4));
  auto parts = parts_of(early);
  EXPECT_FALSE(parts.contains("gan"));
  torch::NoGradGuard no_grad;
  model->eval();
  const auto& autoencoder = dynamic_cast<VqGan&>(*model).autoencoder();
  const at::Tensor x = clips.video.flatten(0, 1);
  const auto out = autoencoder->forward(x, {});
  const at::Tensor error = out.frames - x;
  const LossOutput again = model->loss(clips, at_step("autoencoder", 4));
  EXPECT_NEAR(again.loss.item<double>(),
              (error.abs().mean() + error.square().mean() + 0.7 * out.quantized.loss).item<double>(), 1e-5);
  EXPECT_NEAR(parts_of(again)["l1"], error.abs().mean().item<double>(), 1e-6);
  const LossOutput late = model->loss(clips, at_step("autoencoder", 5));
  EXPECT_TRUE(parts_of(late).contains("gan"));
  for (const char* name : {"l1", "codebook", "perplexity", "used"}) EXPECT_TRUE(parts_of(late).contains(name)) << name;
}

// Of a normal latent: its divergence per value of a frame, and frames of a latent that is drawn.
TEST(VqGan, PartsOfANormalLatentAddUpToTheLoss) {
  const json latent = {{"quantizer", {{"name", "kl"}, {"beta", 0.01}}}, {"codebook_weight", 0.7}};
  const auto model = make_model(tiny_vqgan(latent), {3, 16, 16});
  model->train();
  const Clips clips{noise_video({2, 3, 3, 16, 16}, 1)};
  const LossContext context = at_step("autoencoder", 4);
  const LossOutput found = model->loss(clips, context);
  torch::NoGradGuard no_grad;
  const at::Tensor x = clips.video.flatten(0, 1);
  const auto out = dynamic_cast<VqGan&>(*model).autoencoder()->forward(
      x, {.random = context.random.split("quantizer"), .draw = true});
  const double error = ((out.frames - x).abs().mean() + (out.frames - x).square().mean()).item<double>(),
               kl = out.quantized.divergence.item<double>();
  EXPECT_GT(kl, 0);
  EXPECT_NEAR(found.loss.item<double>(), error + 0.7 * 0.01 * kl / (3 * 16 * 16), 1e-5);
  EXPECT_NEAR(parts_of(found)["kl"], kl, 1e-5 * kl);
  for (const char* name : {"codebook", "perplexity", "used"}) EXPECT_FALSE(parts_of(found).contains(name)) << name;
  EXPECT_TRUE(model->loss(clips, context).loss.equal(found.loss)) << "noise is a function of the stream";
}

// The weight and the gradient of every parameter against one loss in which the weight stands as a number.
TEST(VqGan, TheWeightIsTheRatioOfGradients) {
  auto options = tiny_vqgan({{"quantizer", {{"name", "gradient"}, {"size", 12}, {"features", 5}}}});
  options["discriminator"]["weight"] = 0.6;
  const auto model = make_model(options, {3, 16, 16});
  model->to(at::kDouble);
  model->train();
  auto& vqgan = dynamic_cast<VqGan&>(*model);
  const Clips clips{noise_video({1, 4, 3, 16, 16}, 2).to(at::kDouble)};
  const at::Tensor x = clips.video.flatten(0, 1);
  auto* discriminator = dynamic_cast<nn::PatchDiscriminatorImpl*>(model->named_children()["discriminator"].get());
  std::vector<at::Tensor> learned;
  const Player autoencoder = model->players()[0];
  for (const auto& [name, parameter] : autoencoder.parameters) learned.push_back(parameter);

  const auto out = vqgan.autoencoder()->forward(x, {});
  const at::Tensor nll = (out.frames - x).abs().mean() + (out.frames - x).square().mean();
  const at::Tensor g = -discriminator->forward(out.frames).mean();
  const at::Tensor& last = vqgan.autoencoder()->last_weight();
  const double by_nll = torch::autograd::grad({nll}, {last}, {}, true)[0].norm().item<double>();
  const double by_g = torch::autograd::grad({g}, {last}, {}, true)[0].norm().item<double>();
  const double weight = 0.6 * std::min(by_nll / (by_g + 1e-4), 1e4);
  const auto expected = torch::autograd::grad({nll + weight * g + out.quantized.loss}, learned, {}, false, false, true);

  const LossOutput found = model->loss(clips, at_step("autoencoder", 50));
  EXPECT_NEAR(parts_of(found)["weight"], weight, 1e-9 * weight);
  EXPECT_NEAR(found.loss.item<double>(), (nll + weight * g + out.quantized.loss).item<double>(), 1e-9);
  const auto gradients = torch::autograd::grad({found.loss}, learned, {}, false, false, true);
  for (size_t i = 0; i < learned.size(); ++i) {
    ASSERT_EQ(gradients[i].defined(), expected[i].defined()) << model->players()[0].parameters[i].first;
    if (!expected[i].defined()) continue;
    EXPECT_LT(distance(gradients[i], expected[i]), 1e-9) << model->players()[0].parameters[i].first;
  }
  EXPECT_DOUBLE_EQ(adaptive_weight(at::full({2}, 5.0), at::zeros({2}), 1).item<float>(), 1e4) << "is cut";
}

TEST(VqGan, DiscriminatorLossIsTheHinge) {
  const auto model = make_model(tiny_vqgan(), {3, 16, 16});
  model->train();
  auto& vqgan = dynamic_cast<VqGan&>(*model);
  auto* discriminator = dynamic_cast<nn::PatchDiscriminatorImpl*>(model->named_children()["discriminator"].get());
  const Clips clips{noise_video({2, 2, 3, 16, 16}, 2)};
  const LossOutput found = model->loss(clips, at_step("discriminator", 10));
  torch::NoGradGuard no_grad;
  const at::Tensor x = clips.video.flatten(0, 1), fake = vqgan.autoencoder()->forward(x, {}).frames;
  const double hinge =
      0.5 * (at::relu(1 - discriminator->forward(x)).mean() + at::relu(1 + discriminator->forward(fake)).mean())
                .item<double>();
  EXPECT_NEAR(found.loss.item<double>(), hinge, 1e-5);
}

TEST(VqGan, PlayersShareTheParameters) {
  const auto model = make_model(tiny_vqgan(), {3, 16, 16});
  const auto players = model->players();
  ASSERT_EQ(players.size(), 2u);
  EXPECT_EQ(players[0].name, "autoencoder");
  EXPECT_EQ(players[1].name, "discriminator");
  EXPECT_EQ(players[0].start, 0);
  EXPECT_EQ(players[1].start, 5);
  EXPECT_EQ(players[0].parameters.size() + players[1].parameters.size(), model->named_parameters().size());
  const auto alone = make_model(tiny_vqgan({{"discriminator", {{"weight", 0}}}}), {3, 16, 16});
  EXPECT_EQ(alone->players().size(), 1u);
  expect_error(
      [&] {
        alone->loss({noise_video({1, 1, 3, 16, 16}, 1)}, at_step("discriminator", 1));
      },
      {"no discriminator"});
}

// A loss moves buffers only where it trains.
TEST(VqGan, BuffersStayInEvalMode) {
  const auto model = make_model(tiny_vqgan(), {1, 16, 16});
  const Clips clips{noise_video({2, 2, 1, 16, 16}, 2)};
  const auto copies = [&] {
    std::vector<at::Tensor> all;
    for (const at::Tensor& buffer : model->buffers()) all.push_back(buffer.clone());
    return all;
  };
  const auto same = [&](const std::vector<at::Tensor>& before) {
    bool equal = true;
    for (size_t i = 0; i < before.size(); ++i) equal = equal && model->buffers()[i].equal(before[i]);
    return equal;
  };
  const auto before = copies();
  model->eval();
  model->loss(clips, at_step("autoencoder", 50));
  model->loss(clips, at_step("discriminator", 50));
  model->as_tokenizer()->encode(clips.video);
  EXPECT_TRUE(same(before));
  model->train();
  {
    torch::NoGradGuard no_grad;
    model->loss(clips, at_step("autoencoder", 50));
  }
  EXPECT_TRUE(same(before));
  model->loss(clips, at_step("autoencoder", 50));
  EXPECT_FALSE(same(before));
  const auto trained = copies();
  model->loss(clips, at_step("discriminator", 50));
  EXPECT_FALSE(same(trained)) << "the statistics of batch norm";
}

TEST(VqGan, UnmeasuredPixelsAreNoError) {
  const auto model = make_model(tiny_vqgan(), {1, 16, 16});
  model->eval();
  Clips clips{noise_video({1, 2, 1, 16, 16}, 2)};
  clips.valid = at::zeros_like(clips.video, at::kBool);
  EXPECT_EQ(parts_of(model->loss(clips, at_step("autoencoder", 0)))["l1"], 0);
}

TEST(VqGan, WarnsOfACollapsedTable) {
  const auto model =
      make_model(tiny_vqgan({{"quantizer", {{"name", "gradient"}, {"size", 1024}, {"features", 4}}}}), {1, 16, 16});
  model->train();
  const Clips clips{at::zeros({512, 1, 1, 16, 16})};
  std::string warning;
  for (int i = 0; i < 6 && warning.empty(); ++i) warning = model->loss(clips, at_step("autoencoder", 1)).warning;
  EXPECT_NE(warning.find("5%"), std::string::npos) << warning;
}

TEST(VqGan, WarnsOfACollapsedTableWithoutLpipsToo) {
  const json quantizer = {{"name", "gradient"}, {"size", 1024}, {"features", 4}};
  const auto model = make_model(tiny_vqgan({{"perceptual", "vgg"}, {"quantizer", quantizer}}), {1, 16, 16});
  model->train();
  const Clips clips{at::zeros({512, 1, 1, 16, 16})};
  std::set<std::string> warnings;
  for (int i = 0; i < 6 && warnings.size() < 2; ++i)
    warnings.insert(model->loss(clips, at_step("autoencoder", 1)).warning);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings.begin()->find("5%"), std::string::npos);
  EXPECT_NE(warnings.rbegin()->find("no LPIPS (vgg)"), std::string::npos);
}

TEST(VqGan, SaysThatThereIsNoPerceptualNetwork) {
  const auto model = make_model(tiny_vqgan({{"perceptual", "vgg"}}), {2, 16, 16});
  model->train();
  const auto warning = [&] {
    return model->loss({noise_video({1, 2, 2, 16, 16}, 1)}, at_step("autoencoder", 0)).warning;
  };
  for (const char* part : {"squared error", "no LPIPS (vgg)", "nobody handed it in"}) {
    EXPECT_NE(warning().find(part), std::string::npos) << warning();
  }
  dynamic_cast<VqGan&>(*model).set_perceptual(nullptr, "the weights are at home");
  EXPECT_NE(warning().find("no LPIPS (vgg): the weights are at home"), std::string::npos) << warning();
  const auto without = make_model(tiny_vqgan(), {2, 16, 16});
  without->train();
  EXPECT_EQ(without->loss({noise_video({1, 2, 2, 16, 16}, 1)}, at_step("autoencoder", 0)).warning, "")
      << "it is what was asked for";
}

// With the real weights: the part is the metric, and the gradient reaches the encoder.
TEST(VqGan, LearnsByLpips) {
  const std::string folder = std::string(CONVSSM_SOURCE_DIR) + "/../shared/assets/lpips/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no weights in " << folder;
  const auto lpips =
      std::make_shared<metrics::Lpips>(metrics::LpipsBackbone::squeeze, folder + "squeezenet1_1.features.safetensors",
                                       folder + "lpips_squeeze.linear.v0_1.safetensors");
  const auto model = make_model(tiny_vqgan({{"perceptual", "squeeze"}, {"perceptual_weight", 2}}), {3, 32, 32});
  auto& vqgan = dynamic_cast<VqGan&>(*model);
  vqgan.set_perceptual(lpips);
  model->eval();
  {
    torch::NoGradGuard no_grad;  // frames inside [-1,1], which is all that the metric takes
    model->named_parameters()["autoencoder.decoder.conv_out.weight"].mul_(0.05);
  }
  const Clips clips{noise_video({1, 2, 3, 32, 32}, 1)};
  const LossOutput out = model->loss(clips, at_step("autoencoder", 0));
  auto parts = parts_of(out);
  torch::NoGradGuard no_grad;
  const at::Tensor x = clips.video.flatten(0, 1), y = vqgan.autoencoder()->forward(x, {}).frames;
  const double metric = (*lpips)((x + 1) / 2, ((y + 1) / 2).clamp(0, 1)).mean().item<double>();
  EXPECT_LE(y.abs().max().item<double>(), 1);
  EXPECT_NEAR(parts["lpips"], metric, 1e-4 * metric);
  EXPECT_NEAR(out.loss.item<double>(), parts["l1"] + 2 * parts["lpips"] + parts["codebook"], 1e-5);
  EXPECT_GT(torch::autograd::grad({out.loss}, {model->parameters()[0]})[0].abs().sum().item<double>(), 0);
}

TEST(VqGan, GoesOnWithTheLossItBeganWith) {
  const auto model = make_model(tiny_vqgan({{"perceptual", "vgg"}}), {2, 16, 16});
  model->train();
  const Clips clips{noise_video({1, 2, 2, 16, 16}, 1)};
  const at::Tensor began = model->named_buffers()["began_with"];
  model->loss(clips, at_step("autoencoder", 0));
  EXPECT_EQ(began.item<double>(), 2);
  model->loss(clips, at_step("autoencoder", 1));
  began.fill_(1);
  dynamic_cast<VqGan&>(*model).set_perceptual(nullptr, "no file");
  expect_error([&] { model->loss(clips, at_step("autoencoder", 2)); },
               {"began with LPIPS (vgg)", "cannot go on without: no file"});
  model->eval();
  model->loss(clips, at_step("autoencoder", 2));
}

}  // namespace
}  // namespace convssm::models
