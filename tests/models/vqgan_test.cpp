// The VQ-GAN against an independent PyTorch computation (tools/golden/make_vqgan.py), its law as a tokenizer, its losses and
// its two players.
#include "convssm/models/vqgan/vqgan.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "convssm/io/yaml.h"
#include "convssm/models/flops.h"
#include "convssm/models/registry.h"
#include "convssm/ops/device.h"
#include "tests/models/vqgan_golden.h"
#include "tests/support.h"

namespace convssm::models {
namespace {

using nlohmann::json;
using testing::distance;
using testing::expect_error;
using testing::randn;
using testing::VqGanGolden;

// With the golden parameters, of the type.
std::shared_ptr<Model> golden_vqgan(const VqGanGolden& golden, at::ScalarType type) {
  auto model = make_model(golden.model, {3, 16, 12});
  torch::NoGradGuard no_grad;
  const io::NamedTensors state = golden.state();
  size_t taken = 0;
  for (auto& item : model->named_parameters()) {
    if (item.key().starts_with("discriminator.")) {
      item.value().copy_(VqGanGolden::of_discriminator(item.key(), item.value()));
      continue;
    }
    for (const auto& [name, value] : state) {
      if ("autoencoder." + name == item.key()) item.value().copy_(value), ++taken;
    }
  }
  EXPECT_EQ(taken, state.size()) << "names are those of the public layout";
  model->to(type);
  return model;
}

at::Tensor video_of(const at::Tensor& frames) { return frames.unsqueeze(0); }

TEST(VqGan, EqualsPyTorch) {
  const VqGanGolden golden;
  for (const auto type : {at::kDouble, at::kFloat}) {
    const auto model = golden_vqgan(golden, type);
    auto& vqgan = dynamic_cast<VqGan&>(*model);
    const at::Tensor x = golden.read("x").to(type);
    torch::NoGradGuard no_grad;
    const auto [frames, quantized] = vqgan.autoencoder()->forward(x, {});
    EXPECT_TRUE(quantized.codes.equal(golden.read("codes")));
    EXPECT_LT(distance(frames.to(at::kFloat), golden.read("decoded")), type == at::kDouble ? 1e-6 : 5e-5);
    const at::Tensor codes = model->as_tokenizer()->encode(video_of(x));
    EXPECT_TRUE(codes[0].equal(golden.read("codes")));
    const at::Tensor decoded = model->as_tokenizer()->decode(codes)[0];
    EXPECT_LT(distance(decoded.to(at::kFloat), golden.read("decoded").clamp(-1, 1)), type == at::kDouble ? 1e-6 : 5e-5);
  }
}

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

json tiny_vqgan(const json& more = json::object()) {
  json options = {{"name", "vqgan"},
                  {"features", 8},
                  {"multipliers", {1, 2}},
                  {"blocks", 1},
                  {"attention", {4}},
                  {"latent", 6},
                  {"groups", 4},
                  {"perceptual", "none"},
                  {"quantizer", {{"name", "ema"}, {"size", 12}, {"features", 5}}},
                  {"discriminator", {{"features", 4}, {"layers", 1}, {"start", 5}}}};
  options.update(more);
  return options;
}

at::Tensor noise_video(at::IntArrayRef shape, uint64_t seed) { return randn(shape, seed).clamp(-1, 1).to(at::kFloat); }

// The law of tokenizers: the codes of a clip are those of its pieces, and decoding gives the same bytes, in any batch and
// with any number of threads. Frames of a size that the scale does not divide.
TEST(VqGan, CodesOfAClipAreThoseOfItsPieces) {
  for (const char* kind : {"gradient", "ema", "cosine", "fsq"}) {
    const auto model = make_model(tiny_vqgan({{"quantizer", {{"name", kind}}}}), {3, 9, 7});
    model->eval();
    Tokenizer& tokenizer = *model->as_tokenizer();
    const at::Tensor video = noise_video({2, 5, 3, 9, 7}, 3);
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    const at::Tensor codes = tokenizer.encode(video), frames = tokenizer.decode(codes);
    EXPECT_EQ(codes.sizes(), (at::IntArrayRef{2, 5, 5, 4}));
    EXPECT_EQ(frames.sizes(), video.sizes());
    EXPECT_LE(frames.abs().max().item<double>(), 1);
    EXPECT_TRUE(tokenizer.decode(codes).equal(frames));
    if (std::string(kind) == "ema") {  // a few frames: on a busy machine threads wait for each other
      at::set_num_threads(2);
      EXPECT_TRUE(tokenizer.encode(video.slice(1, 0, 1)).equal(codes.slice(1, 0, 1))) << "two threads";
      EXPECT_TRUE(tokenizer.decode(codes.slice(1, 0, 1)).equal(frames.slice(1, 0, 1))) << "two threads";
    }
    at::set_num_threads(1);
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t t = 0; t < 5; t += 2) {
        const at::Tensor piece = video.slice(0, b, b + 1).slice(1, t, t + 2);
        const at::Tensor its = tokenizer.encode(piece);
        EXPECT_TRUE(its[0].equal(codes[b].slice(0, t, t + 2))) << kind;
        EXPECT_TRUE(tokenizer.decode(its)[0].equal(frames[b].slice(0, t, t + 2))) << kind;
      }
    }
    at::set_num_threads(threads);
    // By the modules, as on another device.
    const ops::PlainKernels plain;
    EXPECT_TRUE(tokenizer.encode(video).equal(codes)) << kind;
    EXPECT_LT(distance(tokenizer.decode(codes), frames), 1e-4) << kind;
  }
}

TEST(VqGan, PlansFollowTheParameters) {
  const auto model = make_model(tiny_vqgan(), {1, 8, 8});
  model->eval();
  const at::Tensor codes = at::arange(16).remainder(12).view({1, 1, 4, 4});
  const at::Tensor before = model->as_tokenizer()->decode(codes);
  {
    torch::NoGradGuard no_grad;
    model->named_parameters()["autoencoder.decoder.conv_out.bias"].add_(0.25);
  }
  const at::Tensor after = model->as_tokenizer()->decode(codes);
  EXPECT_LT(distance(after, (before + 0.25).clamp(-1, 1)), 0.3);
  EXPECT_FALSE(after.equal(before));
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

TEST(VqGan, SaysThatThereIsNoPerceptualNetwork) {
  const auto model = make_model(tiny_vqgan({{"perceptual", "vgg"}}), {2, 16, 16});
  model->train();
  const std::string warning = model->loss({noise_video({1, 2, 2, 16, 16}, 1)}, at_step("autoencoder", 0)).warning;
  EXPECT_NE(warning.find("LPIPS takes 1 or 3 channels"), std::string::npos) << warning;
  EXPECT_NE(warning.find("squared error"), std::string::npos) << warning;
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
  expect_error([&] { model->loss(clips, at_step("autoencoder", 2)); },
               {"began with LPIPS (vgg)", "cannot go on without"});
  model->eval();
  model->loss(clips, at_step("autoencoder", 2));
}

// The parameters of the autoencoder by a count of our own: of frames of 3 channels, with attention at the coarsest level.
int64_t counted_vqgan(const json& model) {
  const auto conv = [](int64_t in, int64_t out, int64_t kernel) { return in * out * kernel * kernel + out; };
  const auto res = [&](int64_t in, int64_t out) {
    return 2 * in + conv(in, out, 3) + 2 * out + conv(out, out, 3) + (in == out ? 0 : conv(in, out, 1));
  };
  const auto attention = [&](int64_t c) { return 2 * c + 4 * conv(c, c, 1); };
  const int64_t ch = model["features"], n = model["blocks"], z = model["latent"];
  const std::vector<int64_t> multipliers = model["multipliers"];
  const int64_t e = model["quantizer"]["features"], codes = model["quantizer"]["size"];
  int64_t count = conv(3, ch, 3), c = ch;
  for (size_t i = 0; i < multipliers.size(); ++i) {
    const bool last = i + 1 == multipliers.size();
    for (int64_t j = 0; j < n; ++j, c = ch * multipliers[i]) count += res(c, ch * multipliers[i]);
    count += last ? n * attention(c) : conv(c, c, 3);
  }
  count +=
      2 * (2 * res(c, c) + attention(c)) + 2 * c + conv(c, z, 3) + conv(z, c, 3);  // both middles and what is between
  for (size_t i = multipliers.size(); i-- > 0;) {
    const bool first = i + 1 == multipliers.size();
    for (int64_t j = 0; j <= n; ++j, c = ch * multipliers[i]) count += res(c, ch * multipliers[i]);
    count += (first ? (n + 1) * attention(c) : 0) + (i > 0 ? conv(c, c, 3) : 0);
  }
  return count + 2 * c + conv(c, 3, 3) + conv(z, e, 1) + conv(e, z, 1) + codes * e;
}

// The sizes that the published parameter counts were derived from; small ones of the same shape are built.
TEST(VqGan, PublishedSizes) {
  const std::map<std::string, std::pair<int64_t, double>> published = {
      {"dmlab", {64, 63.3}}, {"minecraft", {128, 65.1}}, {"habitat", {128, 66.9}}};
  for (const auto& [name, expected] : published) {
    const auto [side, millions] = expected;
    json model = io::read_yaml(std::string(CONVSSM_SOURCE_DIR) + "/configs/tokenizer/" + name + ".yaml")["model"];
    EXPECT_NEAR(static_cast<double>(counted_vqgan(model)) * 1e-6, millions, 0.05) << name;
    model["features"] = 8, model["latent"] = 12;
    const auto small = make_model(model, {3, side, side});
    EXPECT_EQ(parameter_count(*dynamic_cast<VqGan&>(*small).autoencoder()), counted_vqgan(model)) << name;
    EXPECT_EQ(small->as_tokenizer()->codes().height, 16) << name;
  }
}

TEST(VqGan, SaysWhatIsWrongWithOptions) {
  const auto with = [](const json& more, data::FrameFormat frames = {3, 16, 16}) {
    make_model(tiny_vqgan(more), frames);
  };
  expect_error([&] { with({{"perceptual", "vgg19"}}); }, {"perceptual", "vgg19", "vgg"});
  expect_error([&] { with({{"multiplier", {1}}}); }, {"multiplier", "multipliers"});
  expect_error([&] { with({{"discriminator", {{"layers", 4}}}}); }, {"discriminator.layers", "16 x 16", "weight: 0"});
  expect_error([&] { with({{"discriminator", {{"start", -1}}}}); }, {"discriminator.start"});
  expect_error([&] { with({{"codebook_weight", -1}}); }, {"codebook_weight"});
  const auto model = make_model(tiny_vqgan(), {3, 16, 16});
  expect_error([&] { model->as_tokenizer()->encode(noise_video({1, 1, 3, 16, 8}, 1)); }, {"[B,T,3,16,16]"});
  expect_error([&] { model->as_tokenizer()->decode(at::full({1, 1, 8, 8}, 12, at::kLong)); }, {"0 to 11"});
  expect_error([&] { model->as_tokenizer()->decode(at::zeros({1, 1, 8, 8})); }, {"int64"});
}

TEST(VqGan, ArithmeticIsCounted) {
  const auto model = make_model(tiny_vqgan(), {3, 16, 16});
  EXPECT_GT(flops_per_frame(*model, {3, 16, 16}), 1000000u);
}

}  // namespace
}  // namespace convssm::models
