// States of a given age, and the generator, against what the model really does.
#include "bench/generator.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/base/error.h"
#include "convssm/models/forecaster.h"

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
