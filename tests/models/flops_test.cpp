// The arithmetic of whole models against counts by hand: multiplications per frame, layer by layer, times two.
#include "convssm/models/flops.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "convssm/models/tokenizer.h"
#include "convssm/ops/device.h"
#include "convssm/ops/flop_meter.h"
#include "tests/models/tiny_vqgan.h"

namespace convssm::models {
namespace {

using nlohmann::json;

// Frames of 8 x 8 x 1, a latent of 4 x 4 x 8 and one channel of actions.
constexpr uint64_t kFine = 64, kCoarse = 16;

json coder() { return {{"depths", {4, 8}}, {"groups", 4}}; }

uint64_t encoder_products() {
  const uint64_t fine = kFine * 9 * (1 * 4 + 4 * 4 + 4 * 4);
  const uint64_t coarse = kCoarse * (9 * (4 * 8 + 8 * 8) + 4 * 8);
  return fine + coarse;
}

uint64_t decoder_products(uint64_t in) {
  const uint64_t coarse = kCoarse * (9 * (in * 4 + 4 * 8 + 8 * 8) + 4 * 8);
  const uint64_t fine = kFine * (9 * (8 * 4 + 4 * 4) + 8 * 4 + 4 * 1);
  return coarse + fine;
}

uint64_t flops(const json& core) {
  const json options{{"name", "pixel"}, {"encoder", coder()}, {"decoder", coder()}, {"core", core}};
  return flops_per_frame(*make_model(options, {1, 8, 8}), {1, 8, 8});
}

TEST(Flops, OfConvS5) {
  const uint64_t U = 6, N = 4, layers = 3;  // 2P = N real channels of states
  const uint64_t layer = kCoarse * 9 * (U * N + N * U + 2 * U * U);
  const uint64_t products = encoder_products() + kCoarse * 9 * U + layers * layer + decoder_products(U);
  EXPECT_EQ(flops({{"name", "convs5"}, {"features", U}, {"state_size", N}, {"layers", layers}}), 2 * products);
}

// The block instead of resnet's two convolutions.
TEST(Flops, OfTheBlocksOfConvS5) {
  const uint64_t U = 6, N = 4, layers = 2, n = 8;
  const auto expected = [&](uint64_t block) {
    return 2 *
           (encoder_products() + kCoarse * 9 * U + layers * kCoarse * (9 * 2 * U * N + block) + decoder_products(U));
  };
  const auto of = [&](const char* block) {
    return flops(
        {{"name", "convs5"}, {"features", U}, {"state_size", N}, {"layers", layers}, {"activation_block", block}});
  };
  EXPECT_EQ(of("sparse"), expected(2 * (9 * U + U * U)));
  EXPECT_EQ(of("convnext"), expected(49 * U + 8 * U * U));
  EXPECT_EQ(of("s4nd"), expected(2 * 2 * 2 * n * U + 2 * U * U));
}

TEST(Flops, OfConvLSTM) {
  const uint64_t U = 6, layers = 2;
  const uint64_t products =
      encoder_products() + kCoarse * 9 * U + layers * kCoarse * 9 * 2 * U * 4 * U + decoder_products(U);
  EXPECT_EQ(flops({{"name", "convlstm"}, {"features", U}, {"layers", layers}}), 2 * products);
}

// The token of the second frame, from which the third is made, sees the start token, the first frame and itself.
TEST(Flops, OfTheTransformer) {
  const uint64_t D = 8, mlp = 20, layers = 2, out = 5, seen = 3;
  const uint64_t layer = 3 * D * D + D * D + 2 * D * mlp + 2 * seen * D;
  const uint64_t tokens = 9 * kCoarse * D + D * D + layers * layer + D * D + D * out * kCoarse;
  EXPECT_EQ(flops({{"name", "transformer"},
                   {"features", D},
                   {"mlp", mlp},
                   {"heads", 2},
                   {"layers", layers},
                   {"out_features", out}}),
            2 * (encoder_products() + tokens + decoder_products(out)));
}

// Of a model of codes those of its tokenizer too, which makes the frame.
TEST(Flops, OfAModelOfCodes) {
  const json tokenizer = testing::tiny_vqgan({{"frames", data::FrameFormat(3, 8, 8).to_json()}});
  const json options{{"name", "codes"},
                     {"tokenizer", tokenizer},
                     {"encoder", {{"depths", {4}}}},
                     {"decoder", {{"depths", {4}}}},
                     {"core", {{"name", "convs5"}, {"features", 4}, {"state_size", 4}}}};
  const auto model = make_model(options, {1, 8, 8});
  const ops::PlainKernels plain;
  const data::CodeFormat grid = model->as_tokenizer()->codes();
  uint64_t decoding = 0;
  {
    const at::NoGradGuard no_grad;
    const ops::FlopMeter meter;
    model->as_tokenizer()->decode(at::zeros({1, 1, grid.height, grid.width}, at::kLong));
    decoding = meter.count();
  }
  EXPECT_GT(decoding, 0u);
  EXPECT_GT(flops_per_frame(*model, data::FrameFormat::from_json(tokenizer["frames"])), decoding);
}

}  // namespace
}  // namespace convssm::models
