// The VQ-GAN as a tokenizer: against an independent PyTorch computation (tools/golden/make_vqgan.py), its law, its sizes and
// what it refuses.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/io/yaml.h"
#include "convssm/models/flops.h"
#include "convssm/models/vqgan/vqgan.h"
#include "convssm/ops/device.h"
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
    const at::Tensor codes = model->as_tokenizer()->encode(x.unsqueeze(0));
    EXPECT_TRUE(codes[0].equal(golden.read("codes")));
    const at::Tensor decoded = model->as_tokenizer()->decode(codes)[0];
    EXPECT_LT(distance(decoded.to(at::kFloat), golden.read("decoded").clamp(-1, 1)), type == at::kDouble ? 1e-6 : 5e-5);
  }
}

TEST(VqGan, WithANormalLatentEqualsPyTorch) {
  VqGanGolden golden("vqgan_kl.npz");
  golden.model["quantizer"] = {{"name", "kl"}, {"features", 5}};
  for (const auto type : {at::kDouble, at::kFloat}) {
    const auto model = golden_vqgan(golden, type);
    const auto& autoencoder = dynamic_cast<VqGan&>(*model).autoencoder();
    const at::Tensor x = golden.read("x").to(type), mean = golden.read("z").slice(1, 0, 5);
    torch::NoGradGuard no_grad;
    const auto [frames, quantized] = autoencoder->forward(x, {});
    const double divergence = golden.read("divergence").mean().item<double>();
    EXPECT_NEAR(quantized.divergence.item<double>(), divergence, (type == at::kDouble ? 1e-9 : 1e-4) * divergence);
    EXPECT_LT(distance(quantized.out.to(at::kDouble), mean), type == at::kDouble ? 1e-9 : 1e-4);
    EXPECT_LT(distance(frames.to(at::kFloat), golden.read("decoded")), type == at::kDouble ? 1e-6 : 1e-4);
    model->eval();
    Tokenizer& tokenizer = *model->as_tokenizer();
    EXPECT_TRUE(tokenizer.continuous());
    const at::Tensor latents = tokenizer.encode(x.unsqueeze(0));
    EXPECT_EQ(latents.sizes(), (at::IntArrayRef{1, 2, 5, 8, 6}));
    EXPECT_LT(distance(latents[0].to(at::kDouble), mean), type == at::kDouble ? 1e-9 : 1e-4);
    const at::Tensor decoded = tokenizer.decode(latents)[0];
    EXPECT_LT(distance(decoded.to(at::kFloat), golden.read("decoded").clamp(-1, 1)), type == at::kDouble ? 1e-6 : 1e-4);
  }
}

// The published autoencoder of latent diffusion puts out mean and log variance: 2 z channels of the encoder, 2 e after it.
TEST(VqGan, ANormalLatentIsNoCode) {
  const auto model = make_model(tiny_vqgan({{"quantizer", {{"name", "kl"}}}}), {3, 16, 16});
  EXPECT_EQ(model->description().substr(0, 32), "vqgan, 8 x 8 of 4 numbers (kl), ");
  Tokenizer& tokenizer = *model->as_tokenizer();
  EXPECT_EQ(tokenizer.codes().count, 0);
  EXPECT_EQ(tokenizer.codes().height, 8);
  EXPECT_EQ(tokenizer.features(), 4);
  const auto parameters = model->named_parameters();
  EXPECT_EQ(parameters["autoencoder.encoder.conv_out.weight"].size(0), 12);
  EXPECT_EQ(parameters["autoencoder.quant_conv.weight"].sizes(), (at::IntArrayRef{8, 12, 1, 1}));
  EXPECT_EQ(parameters["autoencoder.post_quant_conv.weight"].sizes(), (at::IntArrayRef{6, 4, 1, 1}));
  expect_error([&] { tokenizer.decode(at::zeros({1, 1, 8, 8}, at::kLong)); }, {"[B,T,4,8,8] floats", "[1,1,8,8]"});
  json section = tiny_vqgan({{"quantizer", {{"name", "kl"}}}});
  section["frames"] = data::FrameFormat{3, 16, 16}.to_json();
  expect_error(
      [&] {
        make_model({{"name", "codes"}, {"tokenizer", section}, {"core", {{"name", "convs5"}}}}, {});
      },
      {"tokenizer with codes", "continuous"});
  expect_error(
      [&] {
        make_model({{"name", "teco"}, {"tokenizer", tiny_vqgan()}, {"quantizer", {{"name", "kl"}}}}, {});
      },
      {"quantizer must have codes", "kl"});
}

// The law of tokenizers: the codes of a clip are those of its pieces, and decoding gives the same bytes, in any batch and
// with any number of threads. Frames of a size that the scale does not divide.
TEST(VqGan, CodesOfAClipAreThoseOfItsPieces) {
  for (const std::string kind : {"gradient", "ema", "cosine", "fsq", "kl"}) {
    const auto model = make_model(tiny_vqgan({{"quantizer", {{"name", kind}}}}), {3, 9, 7});
    model->eval();
    Tokenizer& tokenizer = *model->as_tokenizer();
    const at::Tensor video = noise_video({2, 5, 3, 9, 7}, 3);
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    const at::Tensor codes = tokenizer.encode(video), frames = tokenizer.decode(codes);
    if (kind == "kl") {
      EXPECT_EQ(codes.sizes(), (at::IntArrayRef{2, 5, 4, 5, 4}));
    } else {
      EXPECT_EQ(codes.sizes(), (at::IntArrayRef{2, 5, 5, 4}));
    }
    EXPECT_EQ(frames.sizes(), video.sizes());
    EXPECT_LE(frames.abs().max().item<double>(), 1);
    EXPECT_TRUE(tokenizer.decode(codes).equal(frames));
    if (kind == "ema" || kind == "kl") {  // a few frames: on a busy machine threads wait for each other
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
    const at::Tensor by_modules = tokenizer.encode(video);
    EXPECT_TRUE(kind == "kl" ? distance(by_modules, codes) < 1e-4 : by_modules.equal(codes)) << kind;
    EXPECT_LT(distance(tokenizer.decode(codes), frames), 1e-4) << kind;
  }
}

// Of sizes at which matrix products and convolutions are divided among threads.
TEST(VqGan, ThreadsDoNotChangeABit) {
  const auto model =
      make_model(tiny_vqgan({{"features", 48}, {"groups", 16}, {"latent", 64}, {"attention", {24}}}), {3, 48, 40});
  model->eval();
  Tokenizer& tokenizer = *model->as_tokenizer();
  const int threads = at::get_num_threads();
  const at::Tensor video = noise_video({1, 1, 3, 48, 40}, 4),
                   codes = at::arange(480).remainder(12).view({1, 1, 24, 20});
  at::set_num_threads(1);
  const at::Tensor one = tokenizer.encode(video), frames = tokenizer.decode(codes);
  at::set_num_threads(2);
  EXPECT_TRUE(tokenizer.encode(video).equal(one));
  EXPECT_TRUE(tokenizer.decode(codes).equal(frames));
  at::set_num_threads(threads);
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
  const at::Tensor inside = before.abs() < 1;  // others were cut
  ASSERT_GT(inside.sum().item<int64_t>(), 8);
  EXPECT_LT(distance(after.masked_select(inside), (before + 0.25).clamp(-1, 1).masked_select(inside)), 1e-5);
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
  const auto flops = [](int64_t side) {
    const auto model = make_model(tiny_vqgan(), {3, side, side});
    return static_cast<double>(flops_per_frame(*model, {3, side, side}));
  };
  // Of the widest level alone: five blocks of two 3x3 convolutions from 16 to 16 channels at 8 x 8, two of them in the encoder.
  EXPECT_GT(flops(16), 2.0 * 5 * 2 * 9 * 16 * 16 * 64);
  EXPECT_GT(flops(32), 4 * flops(16)) << "convolutions grow with the area, attention with its square";
  EXPECT_LT(flops(32), 6 * flops(16));
}

}  // namespace
}  // namespace convssm::models
