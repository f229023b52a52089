// What a step will take against what it takes, the chunks that are chosen by it, and that estimating changes no model.
#include "convssm/train/memory_estimate.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "convssm/ops/memory_meter.h"
#include "convssm/train/gradients.h"
#include "convssm/train/preflight.h"
#include "tests/models/toys.h"
#include "tests/support.h"

namespace convssm::train {
namespace {

using testing::expect_error;

struct Subject {
  std::shared_ptr<const data::Dataset> dataset;
  std::shared_ptr<models::Model> model;
  data::Clips clip;

  Subject(int64_t size, int64_t features, double dropout = 0)
      : dataset(data::make_dataset(
            {{"name", "moving-mnist"}, {"digits", 1}, {"image_size", size}, {"digit_size", size / 2}}, 1)),
        model(models::make_model(
            {{"encoder", {{"depths", {4, 8}}}},
             {"decoder", {{"depths", {4, 8}}}},
             {"core",
              {{"name", "convs5"}, {"features", features}, {"state_size", 8}, {"layers", 1}, {"dropout", dropout}}}},
            dataset->format())),
        clip(dataset->clip(data::Split::train, 0, 8)) {}
};

TEST(MemoryEstimate, ChunksAreChosenByTheMemoryAllowed) {
  const Subject subject(12, 8), noisy(12, 8, 0.1);
  TrainOptions o;
  o.batch = 2, o.frames = 41, o.workers = 0;
  EXPECT_EQ(plan_step(o, *subject.model, *subject.dataset, 0), 0);
  EXPECT_EQ(plan_step(o, *subject.model, *subject.dataset, 0, 9), 9);
  const MemoryEstimate estimate = estimate_memory(*subject.model, subject.clip);
  TrainOptions ten = o;
  ten.chunk_frames = 10;
  o.memory = fmt::format("{}KiB", estimate.total(ten) / 1024 + 1);
  EXPECT_EQ(plan_step(o, *subject.model, *subject.dataset, 0), 10);
  // With dropout there are no chunks, and the whole clip is too much.
  expect_error([&] { plan_step(o, *noisy.model, *subject.dataset, 0); },
               {"train.memory allows only", "Use a smaller model"});
}

TEST(MemoryEstimate, LeavesBuffersAndGradientsAlone) {
  testing::CountingModel model;
  const data::Clips clip{at::zeros({1, 8, 1, 4, 4})};
  model.loss(clip, {});
  const double before = model.count().item<double>();
  estimate_memory(model, clip);
  EXPECT_EQ(model.count().item<double>(), before) << "a running average moved";
  for (const at::Tensor& p : model.parameters()) EXPECT_FALSE(p.grad().defined());
}

TEST(MemoryEstimate, TakesTheShortestClips) {
  const Subject subject(12, 8);
  TrainOptions o;
  o.batch = 2, o.workers = 0;
  for (const int64_t frames : {2, 3, 4, 5, 8}) {
    o.frames = frames;
    const MemoryEstimate estimate = estimate_memory(*subject.model, data::frames_of(subject.clip, 0, frames));
    EXPECT_GT(estimate.per_frame, 0u) << frames;
    {
      ops::MemoryMeter meter;
      add_gradients(*subject.model, {at::zeros({2, frames, 1, 12, 12})}, {}, 0);
      EXPECT_GT(estimate.total(o), meter.peak()) << frames;
    }
    EXPECT_EQ(plan_step(o, *subject.model, *subject.dataset, 0), 0) << frames;
  }
  o.frames = 1;
  expect_error([&] { plan_step(o, *subject.model, *subject.dataset, 0); }, {"train.frames", "at least 2", "got 1"});
}

TEST(MemoryEstimate, TakesSingleFrames) {
  testing::CountingModel model;
  TrainOptions o;
  o.batch = 4, o.frames = 1, o.workers = 0;
  const MemoryEstimate estimate = estimate_memory(model, {at::zeros({1, 1, 1, 4, 4})});
  EXPECT_GT(estimate.total(o), estimate.fixed);
  EXPECT_LT(estimate.total(o), 1u << 20);
  EXPECT_EQ(choose_chunk(estimate, o, 0), 1);
  EXPECT_EQ(check_memory(estimate, o, true, 1u << 30).find("chunks"), std::string::npos);
}

// A model that forecasts nothing has a loss for every frame, also for the first.
TEST(MemoryEstimate, CountsTheFirstFrameOfModelsThatDoNotForecast) {
  testing::CountingModel model;
  TrainOptions o;
  o.batch = 4, o.frames = 3, o.workers = 0;
  const MemoryEstimate estimate = estimate_memory(model, {at::zeros({1, 3, 1, 4, 4})});
  EXPECT_NE(check_memory(estimate, o, false, 1u << 30).find("4 clips x 3 frames"), std::string::npos);
  const Subject subject(12, 8);
  const MemoryEstimate forecaster = estimate_memory(*subject.model, subject.clip);
  EXPECT_NE(check_memory(forecaster, o, false, 1u << 30).find("4 clips x 2 frames"), std::string::npos);
}

// A thousand values that learn beside a hundred thousand that do not.
class FrozenModel : public models::Model {
 public:
  FrozenModel() {
    weight_ = register_parameter("weight", at::ones({1000}));
    frozen_ = register_frozen("frozen", std::make_shared<torch::nn::LinearImpl>(1000, 100));
  }
  models::LossOutput loss(const models::Clips& clips, const models::LossContext&, const models::State&) override {
    return {frozen_->forward(weight_).sum() * clips.video.mean(), {}, {}};
  }
  std::string description() const override { return "frozen model"; }

 private:
  at::Tensor weight_;
  std::shared_ptr<torch::nn::LinearImpl> frozen_;
};

TEST(MemoryEstimate, KnowsAveragesAndFrozenParts) {
  FrozenModel model;
  const data::Clips clip{at::zeros({1, 8, 1, 4, 4})};
  TrainOptions o;
  const uint64_t plain = estimate_memory(model, clip, o).fixed;
  EXPECT_GT(plain, 4u * 100100 + 16 * 1000);
  EXPECT_LT(plain, 2 * 4u * 100100 + 32 * 1000) << "a frozen part has no gradients and no moments";
  o.optimizer.ema = 0.99;
  EXPECT_EQ(estimate_memory(model, clip, o).fixed, plain + 4 * 1000);
}

TEST(MemoryEstimate, IsCloseToWhatAStepTakes) {
  const Subject subject(32, 32);
  const auto& model = subject.model;
  const MemoryEstimate estimate = estimate_memory(*model, subject.clip);
  TrainOptions o;
  o.batch = 3, o.frames = 17;
  ops::MemoryMeter meter;
  add_gradients(*model, {at::zeros({3, 17, 1, 32, 32})}, {}, 0);
  const double ratio = static_cast<double>(estimate.total(o)) / static_cast<double>(meter.peak());
  EXPECT_GT(ratio, 1.0);
  EXPECT_LT(ratio, 1.5);
}

// Frames of attention with a window take more until it is full, so it is measured on longer clips.
TEST(MemoryEstimate, KnowsWhenAWindowIsFull) {
  const std::shared_ptr<models::Model> model = models::make_model(
      {{"encoder", {{"depths", {4}}}},
       {"decoder", {{"depths", {4}}}},
       {"core", {{"name", "hybrid"}, {"features", 16}, {"state_size", 8}, {"window", 24}, {"heads", 2}}}},
      {1, 8, 8});
  ASSERT_EQ(model->telling_frames(), 48);
  TrainOptions o;
  o.batch = 2, o.frames = 101, o.workers = 0;
  const MemoryEstimate estimate = estimate_memory(*model, {at::zeros({1, 48, 1, 8, 8})});
  ops::MemoryMeter meter;
  add_gradients(*model, {at::zeros({2, 101, 1, 8, 8})}, {}, 0);
  const double ratio = static_cast<double>(estimate.total(o)) / static_cast<double>(meter.peak());
  EXPECT_GT(ratio, 1.0);
  EXPECT_LT(ratio, 1.5);
}

// Most of it is the decoder, which sees one frame in ten.
TEST(MemoryEstimate, KnowsThatFewFramesCount) {
  const std::shared_ptr<models::Model> model =
      models::make_model({{"name", "codes"},
                          {"codebook", {{"count", 256}, {"height", 8}, {"width", 8}, {"features", 2}}},
                          {"encoder", {{"depths", {2}}, {"blocks", 1}}},
                          {"decoder", {{"depths", {32}}, {"blocks", 4}}},
                          {"core", {{"name", "convs5"}, {"features", 2}, {"state_size", 2}, {"layers", 1}}},
                          {"drop_loss", 0.9}},
                         {1, 8, 8});
  data::Clips clip;
  clip.codes = at::zeros({1, 21, 8, 8}, at::kLong);
  const MemoryEstimate estimate = estimate_memory(*model, clip);
  TrainOptions o;
  o.batch = 2, o.frames = 101, o.workers = 0;
  clip.codes = at::zeros({2, 101, 8, 8}, at::kLong);
  ops::MemoryMeter meter;
  add_gradients(*model, clip, {}, 0);
  const double ratio = static_cast<double>(estimate.total(o)) / static_cast<double>(meter.peak());
  EXPECT_GT(ratio, 1.0);
  EXPECT_LT(ratio, 1.5);
}

// Levels that tick every 9 frames, of clips that end in the middle of a window.
TEST(MemoryEstimate, KnowsModelsOfSeveralClocks) {
  const std::shared_ptr<models::Model> model = models::make_model({{"name", "cwvae"},
                                                                   {"factor", 3},
                                                                   {"deterministic", 32},
                                                                   {"embedding", 32},
                                                                   {"filters", 8},
                                                                   {"dense_features", 32}},
                                                                  {1, 32, 32});
  const MemoryEstimate estimate = estimate_memory(*model, {at::zeros({1, 40, 1, 32, 32})});
  EXPECT_EQ(estimate.given, 0);
  TrainOptions o;
  o.batch = 3, o.frames = 40;
  ops::MemoryMeter meter;
  add_gradients(*model, {at::zeros({3, 40, 1, 32, 32})}, {}, 0);
  const double ratio = static_cast<double>(estimate.total(o)) / static_cast<double>(meter.peak());
  EXPECT_GT(ratio, 1.0);
  EXPECT_LT(ratio, 1.6);
}

// Beyond the latents a further frame is one more that is looked at. Windows end anywhere; the estimate is of the longest.
TEST(MemoryEstimate, KnowsModelsThatLookAtAllCodes) {
  const std::shared_ptr<models::Model> model =
      models::make_model({{"name", "perceiver_ar"},
                          {"codebook", {{"count", 32}, {"height", 4}, {"width", 4}}},
                          {"features", 32},
                          {"layers", 2},
                          {"heads", 2},
                          {"latents", 64},
                          {"context", 2000}},
                         {1, 32, 32});
  const auto codes = [](int64_t clips) {
    data::Clips some;
    some.codes = at::zeros({clips, 80, 4, 4}, at::kLong);
    return some;
  };
  const MemoryEstimate estimate = estimate_memory(*model, codes(1));
  EXPECT_EQ(estimate.given, 0);
  TrainOptions o;
  o.batch = 3, o.frames = 80;
  const auto ratio = [&](int64_t step) {
    ops::MemoryMeter meter;
    add_gradients(*model, codes(3), {"model", step, 10, Stream(1)}, 0);
    return static_cast<double>(estimate.total(o)) / static_cast<double>(meter.peak());
  };
  EXPECT_GT(ratio(9), 1.0) << "windows of whole clips";
  EXPECT_LT(ratio(9), 1.5);
  for (int64_t step = 0; step < 5; ++step) EXPECT_GT(ratio(step), 1.0);
}

// A loss of 6 frames, however long the clips are.
TEST(MemoryEstimate, KnowsModelsOfAFewFramesOfAClip) {
  const std::shared_ptr<models::Model> model = models::make_model(
      {{"name", "latent_fdm"}, {"frames", 6}, {"channels", 16}, {"groups", 8}, {"attention", {8}}}, {1, 16, 16});
  const MemoryEstimate estimate = estimate_memory(*model, {at::zeros({1, 40, 1, 16, 16})});
  EXPECT_EQ(model->named_buffers()["clip_frames"].item<int64_t>(), 0) << "buffers are put back";
  for (const int64_t frames : {6, 40}) {
    TrainOptions o;
    o.batch = 3, o.frames = frames;
    ops::MemoryMeter meter;
    add_gradients(*model, {at::zeros({3, frames, 1, 16, 16})}, {}, 0);
    const double ratio = static_cast<double>(estimate.total(o)) / static_cast<double>(meter.peak());
    EXPECT_GT(ratio, 1.0) << frames;
    EXPECT_LT(ratio, 1.7) << frames;
  }
}

// Contexts end anywhere, but what is decoded is as much in every step; running statistics stay what they were.
TEST(MemoryEstimate, KnowsModelsWithBatchNormAndMovesNoStatistics) {
  const std::shared_ptr<models::Model> model = models::make_model({{"name", "fitvid"},
                                                                   {"stages", 2},
                                                                   {"blocks", 1},
                                                                   {"filters", 8},
                                                                   {"expansion", 2},
                                                                   {"hidden", 16},
                                                                   {"memory", 16}},
                                                                  {1, 16, 16});
  model->train();
  const data::Clips clip{testing::randn({1, 20, 1, 16, 16}, 1).tanh().to(at::kFloat)};
  model->loss(clip, {});
  std::vector<at::Tensor> before;
  for (const at::Tensor& buffer : model->buffers()) before.push_back(buffer.clone());
  const MemoryEstimate estimate = estimate_memory(*model, clip);
  ASSERT_FALSE(before.empty());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(model->buffers()[i].equal(before[i])) << i;
  TrainOptions o;
  o.batch = 3, o.frames = 20;
  ops::MemoryMeter meter;
  add_gradients(*model, {at::zeros({3, 20, 1, 16, 16})}, {}, 0);
  const double ratio = static_cast<double>(estimate.total(o)) / static_cast<double>(meter.peak());
  EXPECT_GT(ratio, 1.0);
  EXPECT_LT(ratio, 1.6);
}

TEST(MemoryEstimate, KnowsThatRecomputingKeepsLess) {
  const Subject subject(12, 8);
  const auto per_frame = [&](bool recompute) {
    TrainOptions o;
    o.recompute = recompute;
    return estimate_memory(*subject.model, subject.clip, o).per_frame;
  };
  EXPECT_LT(static_cast<double>(per_frame(true)), 0.8 * static_cast<double>(per_frame(false)));
}

// Against trying every length.
TEST(MemoryEstimate, ChoosesTheLargestChunksThatFit) {
  const MemoryEstimate estimate{.fixed = 1000, .per_frame = 100, .state = 900, .pixels = 1, .program = 50};
  TrainOptions o;
  o.batch = 2, o.frames = 101;
  const auto total = [&](int64_t chunk) {
    TrainOptions with = o;
    with.chunk_frames = chunk;
    return estimate.total(with);
  };
  uint64_t least = total(1);
  for (int64_t c = 1; c <= 100; ++c) least = std::min(least, total(c));
  for (uint64_t budget = least; budget < total(0); budget += 97) {
    int64_t largest = 0;
    for (int64_t c = 1; c < 100; ++c) largest = total(c) <= budget ? c : largest;
    const int64_t chunks = (100 + largest - 1) / largest, even = (100 + chunks - 1) / chunks;
    EXPECT_EQ(choose_chunk(estimate, o, budget), total(even) <= budget ? even : largest) << budget;
  }
  EXPECT_EQ(choose_chunk(estimate, o, total(0)), 0);
  EXPECT_EQ(total(choose_chunk(estimate, o, least - 1)), least);
}

TEST(MemoryEstimate, AdviceIsTheLeastChangeThatFits) {
  constexpr uint64_t mega = 1 << 20;
  const MemoryEstimate estimate{.fixed = 10 * mega, .per_frame = mega};
  TrainOptions o;
  o.batch = 4, o.frames = 1001;
  const auto advice = [&](uint64_t available, const std::vector<std::string>& parts) {
    expect_error([&] { check_memory(estimate, o, true, available); }, parts);
  };
  EXPECT_NE(check_memory(estimate, o, true, 8000 * mega).find("4 clips x 1000 frames"), std::string::npos);
  advice(2000 * mega, {"only 2.0 GiB available", "the same gradients: train.accumulate=4"});
  advice(400 * mega, {"train.accumulate=4 train.chunk_frames=250"});
  advice(11 * mega, {"Use a smaller model"});
  expect_error([&] { check_memory(estimate, o, false, 400 * mega); }, {"Use a smaller model", "train.recompute=true"});
  o.memory = "400MiB";
  advice(8000 * mega, {"train.memory allows only 400.0 MiB", "train.accumulate=4 train.chunk_frames=250"});
}

}  // namespace
}  // namespace convssm::train
