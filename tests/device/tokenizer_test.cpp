// A tokenizer trains, both players, and encodes on a device that is not the CPU, with the numbers of the CPU; likewise with all
// kernels replaced by their plain versions.
#include "convssm/models/tokenizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "convssm/ops/device.h"
#include "convssm/train/trainer.h"
#include "other_device.h"
#include "tests/support.h"

namespace convssm {
namespace {

constexpr int64_t kTokenSide = 12;

class NoiseFrames : public data::Dataset {
 public:
  data::Clips clip(data::Split split, uint64_t index, int64_t frames) const override {
    Stream stream(2, data::name(split), index);
    data::Clips clip{at::empty({1, frames, 1, kTokenSide, kTokenSide})};
    for (int64_t i = 0; i < clip.video.numel(); ++i) {
      clip.video.data_ptr<float>()[i] = static_cast<float>(stream.uniform(-1, 1));
    }
    return clip;
  }
  uint64_t size(data::Split) const override { return 20; }
  int64_t longest(data::Split) const override { return data::any_length; }
  data::FrameFormat format() const override { return {1, kTokenSide, kTokenSide}; }
  std::vector<std::string> summary() const override { return {"noise"}; }
};

struct TrainedTokenizer : train::TrainObserver {
  void line(int64_t, const nlohmann::json& scores, const nlohmann::json&) override { lines.push_back(scores); }
  std::shared_ptr<models::Model> model;
  std::vector<nlohmann::json> lines;
  at::Tensor decoded;
};

std::unique_ptr<TrainedTokenizer> train_tokenizer_on(at::Device device, const char* quantizer) {
  auto t = std::make_unique<TrainedTokenizer>();
  const auto dataset = std::make_shared<NoiseFrames>();
  nlohmann::json table = {{"name", quantizer}};
  // Fewer codes than features: k-means would begin with equal ones, between which rounding decides.
  const bool has_size = table["name"] != "fsq" && table["name"] != "kl";
  if (has_size) table["size"] = 12;
  t->model = models::make_model({{"name", "vqgan"},
                                 {"features", 8},
                                 {"multipliers", {1, 2}},
                                 {"blocks", 1},
                                 {"attention", {6}},
                                 {"latent", 8},
                                 {"groups", 4},
                                 {"perceptual", "none"},
                                 {"quantizer", table},
                                 {"discriminator", {{"start", 1}, {"features", 4}, {"layers", 1}}}},
                                dataset->format());
  t->model->to(device);
  const auto options = train::TrainOptions::from_json({{"steps", 3},
                                                       {"batch", 2},
                                                       {"frames", 2},
                                                       {"warmup", 0},
                                                       {"lr", 1e-3},
                                                       {"recompute", true},
                                                       {"log_interval", 1},
                                                       {"sample_interval", 3},
                                                       {"sample_frames", 1},
                                                       {"workers", 0}});
  train::Trainer trainer(*t->model, dataset, options, 1, *t);
  const StopRequest stop;
  EXPECT_EQ(trainer.run(stop), train::Outcome::finished);
  t->model->eval();
  models::Tokenizer& tokenizer = *t->model->as_tokenizer();
  const at::Tensor codes = at::arange(36).remainder(12).view({1, 1, 6, 6}),
                   numbers = (codes.to(at::kFloat) / 12).unsqueeze(2).repeat({1, 1, 4, 1, 1});
  t->decoded = tokenizer.decode((tokenizer.continuous() ? numbers : codes).to(device));
  EXPECT_EQ(t->decoded.device(), device);
  t->decoded = t->decoded.cpu();
  const at::Tensor video = dataset->clip(data::Split::test, 0, 3).video.to(device);
  EXPECT_EQ(tokenizer.encode(video).device(), device);
  return t;
}

void expect_same_tokenizer(const TrainedTokenizer& found, const TrainedTokenizer& expected) {
  ASSERT_EQ(found.lines.size(), expected.lines.size());
  for (size_t i = 0; i < expected.lines.size(); ++i) {
    for (const char* key : {"loss", "l1", expected.lines[i].contains("kl") ? "kl" : "codebook"}) {
      const double value = expected.lines[i].at(key).get<double>();
      EXPECT_NEAR(found.lines[i].at(key).get<double>(), value, 2e-2 * (1 + std::abs(value))) << key << " of line " << i;
    }
  }
  EXPECT_LT((found.decoded - expected.decoded).abs().mean().item<double>(), 2e-2);
}

TEST(Devices, ATokenizerTrainsWithPlainKernels) {
  for (const char* quantizer : {"ema", "gradient", "cosine", "fsq", "kl"}) {
    SCOPED_TRACE(quantizer);
    const auto fast = train_tokenizer_on(at::kCPU, quantizer);
    const ops::PlainKernels plain;
    expect_same_tokenizer(*train_tokenizer_on(at::kCPU, quantizer), *fast);
  }
}

TEST(Devices, ATokenizerTrainsOnAnotherDevice) {
  if (const auto why = testing::obstacle_to_gradients(); !why.empty()) GTEST_SKIP() << why;
  for (const char* quantizer : {"ema", "gradient", "cosine", "fsq", "kl"}) {
    SCOPED_TRACE(quantizer);
    const int64_t before = testing::operations_on_other_device();
    const auto found = train_tokenizer_on(testing::other_device(), quantizer);
    EXPECT_GT(testing::operations_on_other_device(), before + 500);
    expect_same_tokenizer(*found, *train_tokenizer_on(at::kCPU, quantizer));
  }
}

}  // namespace
}  // namespace convssm
