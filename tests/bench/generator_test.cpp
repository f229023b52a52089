// States of a given age, and the generator, against what the model really does.
#include "bench/generator.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/base/error.h"
#include "convssm/models/forecaster.h"
#include "convssm/ops/flop_meter.h"

namespace convssm::bench {
namespace {

using nlohmann::json;

BenchModel tiny(const json& core) {
  BenchModel made;
  made.name = core.at("name");
  const json coder{{"depths", {4, 8}}, {"groups", 4}};
  made.config = run::Config::from_json(
      {{"model", {{"encoder", coder}, {"decoder", coder}, {"core", core}}},
       {"data", {{"name", "moving-mnist"}, {"digits", 1}, {"image_size", 16}, {"digit_size", 8}, {"clips", 2}}}});
  made.format = run::make_dataset(made.config)->format();
  made.model = run::make_model(made.config, made.format);
  return made;
}

json token_core(const char* name) {
  return {{"name", name}, {"features", 8}, {"heads", 2}, {"layers", 2}, {"out_features", 4}, {"patch", 4}};
}

std::vector<json> cores() {
  json recompute = token_core("transformer");
  recompute["recompute"] = true;
  return {{{"name", "convs5"}, {"features", 4}, {"state_size", 4}, {"layers", 2}},
          {{"name", "convlstm"}, {"features", 4}, {"layers", 2}},
          token_core("transformer"),
          recompute,
          token_core("performer")};
}

TEST(StateAfter, HasTheShapesOfAStateOfThatAge) {
  at::NoGradGuard no_grad;
  for (const json& core : cores()) {
    const BenchModel subject = tiny(core);
    const models::State real = models::forecaster_of(*subject.model).start({subject.clip(7)}, {}),
                        made = state_after(subject, 7);
    ASSERT_EQ(made.items().size(), real.items().size()) << core;
    for (const auto& [name, value] : real.items()) {
      EXPECT_EQ(made.get(name).sizes(), value.sizes()) << core << name;
      if (!name.ends_with("position")) continue;
      EXPECT_EQ(made.get(name).item<int64_t>(), value.item<int64_t>()) << core;
    }
    EXPECT_TRUE(models::forecaster_of(*subject.model).next(made, {}).frame.isfinite().all().item<bool>()) << core;
  }
}

// What a training step of L frames counts beyond its frames one by one.
double beyond_the_frames(const BenchModel& subject, int64_t L) {
  const at::Tensor video = subject.clip(L + 1);
  double frames = 0;
  for (int64_t seen = 1; seen <= L; ++seen) frames += flops_after(subject, seen);
  const ops::FlopMeter meter;
  subject.model->loss({video}, {});
  return static_cast<double>(meter.count()) - frames;
}

// Once, whatever the length, a Transformer has a start token more and a ConvLSTM the convolutions of an empty state less.
// With the length grows what the mask of a Transformer hides, in blocks of 128 tokens.
TEST(FlopsAfter, AddUpToThoseOfATrainingStep) {
  at::NoGradGuard no_grad;
  for (const json& core : {cores()[0], cores()[1], cores()[2]}) {
    const BenchModel subject = tiny(core);
    double hidden = 0;
    if (subject.name == "transformer") {
      // Frames of 4 tokens, 255 and one of start tokens in 8 blocks of 32: block j sees 32 j.
      const double pairs = 32 * 32 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8) - 256 * 257 / 2, pairs_of_one = 2 * 2 - 2 * 3 / 2;
      const double flops = 2 * 2 * 8 * 2 * 4 * 4;  // of a pair: two products, 8 features, 2 layers, 4 x 4 tokens
      hidden = flops * (pairs - pairs_of_one);
    }
    EXPECT_EQ(beyond_the_frames(subject, 255) - beyond_the_frames(subject, 1), hidden) << core;
  }
}

TEST(Generator, GivesTheFramesOfTheModel) {
  at::NoGradGuard no_grad;
  const BenchModel subject = tiny(cores()[0]);
  models::Forecaster& forecaster = models::forecaster_of(*subject.model);
  models::State state = forecaster.start({subject.clip(4)}, {});
  const Generator next = make_generator(subject, state);
  for (int i = 0; i < 3; ++i) {
    models::Forecast out = forecaster.next(state, {});
    state = std::move(out.state);
    EXPECT_LT((next() - out.frame).abs().max().item<float>(), 1e-4) << i;
  }
}

TEST(BenchModels, AreThoseOfTheConfigs) {
  const BenchModel mini = make_bench_model("mini", "convs5");
  EXPECT_EQ(models::parameter_count(*mini.model), 121507);
  EXPECT_EQ(mini.clip(3).sizes(), at::IntArrayRef({1, 3, 1, 32, 32}));
  EXPECT_TRUE(mini.clip(3).equal(mini.clip(3)));
  EXPECT_THROW(make_bench_model("mini", "convs6"), Error);
}

}  // namespace
}  // namespace convssm::bench
