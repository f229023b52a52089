// Training in chunks gives the gradients of the whole clip, for every model that says so: the pixel model with each core
// whose state does not grow, and others. Recomputing changes no bit.
#include "convssm/train/gradients.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "convssm/ops/memory_meter.h"
#include "tests/models/field_model.h"
#include "tests/models/toys.h"
#include "tests/support.h"

namespace convssm::train {
namespace {

using testing::distance;
using testing::randn;

// A model of frames of 1 x 8 x 8 with three actions.
struct Subject {
  const char* label;
  std::function<std::shared_ptr<models::Model>()> make;
};

struct Core {
  const char* label;
  nlohmann::json options;
};

const std::vector<Core> kCores = {
    {"convs5", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}}},
    {"gaussian", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}, {"init", "gaussian"}}},
    {"learned_state",
     {{"name", "convs5"},
      {"features", 8},
      {"state_size", 8},
      {"layers", 2},
      {"learned_state", true},
      {"activation_block", "convnext"}}},
    {"lru",
     {{"name", "convs5"},
      {"features", 8},
      {"state_size", 8},
      {"layers", 2},
      {"init", "lru"},
      {"activation_block", "s4nd"},
      {"axis_states", 4}}},
    {"sparse", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}, {"activation_block", "sparse"}}},
    {"selective", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"dynamics", "selective"}}},
    {"gated", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"dynamics", "gated"}, {"learned_state", true}}},
    {"liquid",
     {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"dynamics", "liquid"}, {"output_gate", "gelu"}}},
    {"hybrid",
     {{"name", "hybrid"},
      {"features", 8},
      {"state_size", 8},
      {"layers", 3},
      {"heads", 1},
      {"window", 3},
      {"patch", 2},
      {"mlp", 8}}},
    {"convrnn", {{"name", "convrnn"}, {"features", 8}, {"layers", 2}}},
    {"convlstm", {{"name", "convlstm"}, {"features", 8}, {"layers", 2}}},
    {"convgru", {{"name", "convgru"}, {"features", 8}, {"layers", 2}}},
    {"s5", {{"name", "s5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}, {"out_features", 8}}},
    {"performer", {{"name", "performer"}, {"features", 8}, {"heads", 2}, {"layers", 2}, {"out_features", 8}}},
    {"transformer",
     {{"name", "transformer"}, {"features", 8}, {"heads", 2}, {"layers", 2}, {"out_features", 8}, {"window", 4}}},
};

std::shared_ptr<models::Model> make(const nlohmann::json& core) {
  const nlohmann::json coder = {{"depths", {4, 8}}};
  return models::make_model({{"encoder", coder}, {"decoder", coder}, {"core", core}, {"actions", 3}}, {1, 8, 8});
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const Core& core : kCores) all.push_back({core.label, [&core] { return make(core.options); }});
  all.push_back({"drawing", [] { return std::make_shared<testing::DrawingModel>(); }});
  return all;
}

std::vector<at::Tensor> gradients(models::Model& model, int64_t chunk, LossValues& values, bool recompute = false) {
  const at::Tensor video = randn({2, 11, 1, 8, 8}, 1).to(model.parameters()[0].scalar_type()).tanh();
  const at::Tensor actions = at::arange(22, at::kLong).view({2, 11}).remainder(4) - 1;
  for (const at::Tensor& p : model.parameters()) p.mutable_grad() = at::Tensor();
  values = add_gradients(model, {video, actions}, {}, chunk, 0.5, recompute);
  std::vector<at::Tensor> copies;
  for (const at::Tensor& p : model.parameters()) {
    copies.push_back(p.grad().defined() ? p.grad().clone() : at::zeros_like(p));
  }
  return copies;
}

class Chunked : public ::testing::TestWithParam<Subject> {};

TEST_P(Chunked, GradientsEqualThoseOfTheWholeClip) {
  const auto model = GetParam().make();
  ASSERT_EQ(model->obstacle_to_chunks(), "");
  for (const auto& [type, bound] :
       std::vector<std::pair<at::ScalarType, double>>{{at::kFloat, 2e-4}, {at::kDouble, 1e-9}}) {
    model->to(type);
    LossValues whole_values, values;
    const auto whole = gradients(*model, 0, whole_values);
    double largest = 0;
    for (const auto& g : whole) largest = std::max(largest, testing::max_abs(g));
    EXPECT_GT(largest, 1e-3);
    for (const int64_t chunk : {1, 3, 5, 10, 99}) {
      const auto chunks = gradients(*model, chunk, values);
      EXPECT_NEAR(values.loss, whole_values.loss, bound * whole_values.loss) << chunk;
      for (size_t i = 0; i < whole.size(); ++i) {
        EXPECT_LT(distance(chunks[i], whole[i]), bound * std::max(0.01 * largest, testing::max_abs(whole[i])))
            << model->named_parameters()[i].key() << ", chunks of " << chunk;
      }
    }
  }
}

// What is run again are the same operations on the same numbers: not one bit may differ.
TEST_P(Chunked, RecomputedGradientsHaveTheSameBits) {
  const auto model = GetParam().make();
  for (const auto type : {at::kFloat, at::kDouble}) {
    model->to(type);
    for (const int64_t chunk : {0, 4}) {
      LossValues kept_values, values;
      const auto kept = gradients(*model, chunk, kept_values);
      const auto again = gradients(*model, chunk, values, true);
      EXPECT_EQ(values.loss, kept_values.loss);
      for (size_t i = 0; i < kept.size(); ++i) {
        EXPECT_TRUE(again[i].equal(kept[i]))
            << model->named_parameters()[i].key() << ", chunks of " << chunk << ": " << distance(again[i], kept[i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllModels, Chunked, ::testing::ValuesIn(subjects()),
                         [](const auto& i) { return i.param.label; });

std::vector<at::Tensor> gradients_of(models::Model& model, const data::Clips& clips, int64_t chunk, double& loss) {
  model.zero_grad(true);
  loss = add_gradients(model, clips, {}, chunk).loss;
  std::vector<at::Tensor> copies;
  for (const at::Tensor& p : model.parameters()) copies.push_back(p.grad().clone());
  return copies;
}

void expect_near(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(distance(found[i], expected[i]), 1e-9 * std::max(1.0, testing::max_abs(expected[i]))) << i;
  }
}

// Chunks, and rows, have other numbers of measured pixels, one has none.
TEST(Gradients, OfFieldsAreThoseOfTheWholeHoweverTheyAreCut) {
  for (const bool mask : {true, false}) {
    const auto model = testing::field_model(testing::kFieldCore, mask);
    model->to(at::kDouble);
    data::Clips clips = testing::field_clips(3, 11);
    clips.valid[1].slice(0, 3).logical_and_(randn(clips.valid[1].slice(0, 3).sizes(), 4) > 1);
    double expected = 0, found = 0;
    const auto whole = gradients_of(*model, clips, 0, expected);
    for (const int64_t chunk : {1, 3, 7}) {
      expect_near(gradients_of(*model, clips, chunk, found), whole);
      EXPECT_NEAR(found, expected, 1e-10 * expected) << chunk;
    }
    model->zero_grad(true);
    double sum = 0, shares = 0;
    for (int64_t row = 0; row < 3; ++row) {
      const data::Clips some = data::rows_of(clips, row, row + 1);
      const double share = share_of(*model, some, clips);
      sum += share * add_gradients(*model, some, {}, 4, share).loss;
      shares += share;
    }
    std::vector<at::Tensor> rows;
    for (const at::Tensor& p : model->parameters()) rows.push_back(p.grad());
    expect_near(rows, whole);
    EXPECT_NEAR(sum, expected, 1e-10 * expected);
    EXPECT_NEAR(shares, 1, 1e-12);
  }
}

TEST(Gradients, OfFramesAtIrregularTimesAreThoseOfTheWhole) {
  const auto model = make(kCores[0].options);
  model->to(at::kDouble);
  data::Clips clips{randn({2, 9, 1, 8, 8}, 1).tanh()};
  double plain = 0, expected = 0, found = 0;
  gradients_of(*model, clips, 0, plain);
  clips.timing.dt = randn({2, 9}, 2).exp();
  const auto whole = gradients_of(*model, clips, 0, expected);
  EXPECT_GT(std::abs(expected - plain), 1e-6);
  for (const int64_t chunk : {1, 3, 5}) {
    expect_near(gradients_of(*model, clips, chunk, found), whole);
    EXPECT_NEAR(found, expected, 1e-10 * expected) << chunk;
  }
  const auto timeless = make(nlohmann::json{{"name", "convlstm"}, {"features", 8}});
  timeless->to(at::kDouble);
  testing::expect_error([&] { add_gradients(*timeless, clips, {}, 0); }, {"dt"});
}

// A step goes on from a state, and no gradient goes before it.
TEST(Gradients, GoOnFromAState) {
  const auto model = make(kCores[0].options);
  model->to(at::kDouble);
  const data::Clips clips{randn({2, 9, 1, 8, 8}, 1).tanh()}, before = data::frames_of(clips, 0, 4),
                                                             after = data::frames_of(clips, 3, 9);
  const LossValues first = add_gradients(*model, before, {}, 0), whole = add_gradients(*model, clips, {}, 2);
  for (const auto& [name, value] : first.state.items()) EXPECT_FALSE(value.requires_grad()) << name;
  for (const int64_t chunk : {0, 2}) {
    const LossValues second = add_gradients(*model, after, {}, chunk, 1, false, first.state);
    EXPECT_NEAR((3 * first.loss + 5 * second.loss) / 8, whole.loss, 1e-10) << chunk;
    for (const auto& [name, value] : whole.state.items()) EXPECT_LT(distance(second.state.get(name), value), 1e-10);
  }
}

class Recomputed : public ::testing::TestWithParam<Core> {};

TEST_P(Recomputed, KeepsLess) {
  nlohmann::json core = GetParam().options;
  core["layers"] = 8;
  const auto model = make(core);
  const at::Tensor video = at::zeros({1, 65, 1, 8, 8});
  const auto peak = [&](bool recompute) {
    ops::MemoryMeter meter;
    add_gradients(*model, {video}, {}, 0, 1, recompute);
    return static_cast<double>(meter.peak());
  };
  peak(false);  // makes the gradients
  EXPECT_LT(peak(true), 0.8 * peak(false));
}

INSTANTIATE_TEST_SUITE_P(AllCores, Recomputed, ::testing::ValuesIn(kCores),
                         [](const auto& i) { return i.param.label; });

TEST(Gradients, RecomputingDrawsTheSameDropout) {
  nlohmann::json core = kCores[0].options;
  core["dropout"] = 0.5;
  const auto model = make(core);
  const auto run = [&](bool recompute) {
    at::manual_seed(3);
    LossValues values;
    auto found = gradients(*model, 0, values, recompute);
    found.push_back(at::rand({1}));  // what is drawn after it is the same too
    return found;
  };
  const auto kept = run(false), again = run(true);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(again[i].equal(kept[i])) << i;
}

TEST(Gradients, AddUpWithTheirWeight) {
  const auto model = make(kCores[0].options);
  LossValues values;
  const auto half = gradients(*model, 0, values);
  const at::Tensor video = randn({2, 11, 1, 8, 8}, 1).to(at::kFloat).tanh();
  const at::Tensor actions = at::arange(22, at::kLong).view({2, 11}).remainder(4) - 1;
  add_gradients(*model, {video, actions}, {}, 0, 0.5);
  for (size_t i = 0; i < half.size(); ++i) {
    const at::Tensor found = model->parameters()[i].grad();
    EXPECT_LT(distance(found, 2 * half[i]), 1e-4 * std::max(1e-3, testing::max_abs(half[i])));
  }
}

}  // namespace
}  // namespace convssm::train
