// Table 1 (section 3.5), cost over the number of frames L: per generated frame O(L) for a Transformer, O(1) for ConvRNNs
// and ConvS5; per training step O(L^2), O(L), O(L); parallel over frames: yes, no, yes. Exponents are fitted to counted
// operations: multiplications of convolutions and products (FlopMeter), and those of the scan (ScanCounter). A backward has
// two products of the same size for each of a forward, so the exponents of a training step are those of its forward.
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "convssm/cores/registry.h"
#include "convssm/ops/flop_meter.h"
#include "convssm/ops/scan.h"
#include "tests/paper/naive.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using nlohmann::json;
using testing::fitted_exponent;
using testing::randn;

constexpr int64_t kTableWidth = 8, kTableLayers = 2;

std::shared_ptr<Core> small_core(const std::string& name) {
  json options{{"features", kTableWidth}, {"layers", kTableLayers}};
  if (name == "convs5") options["state_size"] = 8;
  if (name == "transformer") options["heads"] = 2;
  return make_core(name, options);
}

at::Tensor some_frames(const std::string& name, int64_t L) {
  const at::Tensor x = name == "transformer" ? randn({L, 1, kTableWidth}, 1) : randn({L, 1, kTableWidth, 3, 3}, 1);
  return x.to(at::kFloat);
}

struct Cost {
  double flops = 0, convolutions = 0, state = 0;
};

// Of all L frames at once.
Cost cost_of_training(const std::string& name, int64_t L) {
  torch::NoGradGuard no_grad;
  const auto core = small_core(name);
  const at::Tensor x = some_frames(name, L);
  ops::FlopMeter meter;
  core->forward(x);
  return {double(meter.count()), double(meter.convolutions().size()), 0};
}

// Of one more frame after L frames, and the numbers that are carried to it.
Cost cost_of_a_step(const std::string& name, int64_t L) {
  torch::NoGradGuard no_grad;
  const auto core = small_core(name);
  const State state = core->forward(some_frames(name, L)).state;
  double numbers = 0;
  for (const auto& [key, tensor] : state.items()) numbers += tensor.numel();
  ops::FlopMeter meter;
  core->step(some_frames(name, 1)[0], state);
  return {double(meter.count()), double(meter.convolutions().size()), numbers};
}

TEST(Table1, TrainingIsQuadraticForATransformer) {
  // With its first learned token a clip of L frames has T = L + 1: counts are a T + b T^2, and c(2T) - 2 c(T) = 2 b T^2
  // is free of the linear part.
  std::vector<double> tokens, quadratic, all;
  for (int64_t T = 128; T <= 1024; T *= 2) {
    const double once = cost_of_training("transformer", T - 1).flops;
    tokens.push_back(T);
    all.push_back(once);
    quadratic.push_back(cost_of_training("transformer", 2 * T - 1).flops - 2 * once);
  }
  EXPECT_NEAR(fitted_exponent(tokens, quadratic), 2, 0.01);
  // By hand, of T^2 / 2 pairs that see each other, two products of kTableWidth multiplications each: 2 b T^2 = 4 T^2 kTableWidth.
  for (size_t i = 0; i < tokens.size(); ++i)
    EXPECT_DOUBLE_EQ(quadratic[i], 4 * tokens[i] * tokens[i] * kTableWidth * kTableLayers) << tokens[i];
  // Of the whole cost the quadratic part takes over.
  const double short_clips = fitted_exponent({128, 256}, {all[0], all[1]});
  const double long_clips = fitted_exponent({512, 1024}, {all[2], all[3]});
  EXPECT_GT(long_clips, short_clips + 0.3);
  EXPECT_GT(long_clips, 1.7);
}

TEST(Table1, TrainingIsLinearForConvRnnsAndConvS5) {
  const std::vector<double> lengths{64, 128, 256, 512};
  for (const char* name : {"convs5", "convrnn", "convlstm", "convgru"}) {
    std::vector<double> counts;
    for (const double L : lengths) counts.push_back(cost_of_training(name, int64_t(L)).flops);
    EXPECT_NEAR(fitted_exponent(lengths, counts), 1, 0.01) << name;
  }
}

TEST(Table1, AStepGrowsWithItsPastOnlyForATransformer) {
  std::vector<double> seen, growth, states;
  for (int64_t L = 16; L <= 256; L *= 2) {
    seen.push_back(L);
    growth.push_back(cost_of_a_step("transformer", 2 * L).flops - cost_of_a_step("transformer", L).flops);
    states.push_back(cost_of_a_step("transformer", L).state);
    // By hand: L more keys and values, two products of kTableWidth multiplications.
    EXPECT_DOUBLE_EQ(growth.back(), 4.0 * L * kTableWidth * kTableLayers);
  }
  EXPECT_NEAR(fitted_exponent(seen, growth), 1, 0.01);
  EXPECT_NEAR(fitted_exponent(seen, states), 1, 0.05);
  for (const char* name : {"convs5", "convrnn", "convlstm", "convgru"}) {
    const Cost early = cost_of_a_step(name, 1), late = cost_of_a_step(name, 512);
    EXPECT_GT(early.flops, 0);
    EXPECT_EQ(early.flops, late.flops) << name;
    EXPECT_EQ(early.state, late.state) << name;
  }
}

// Convolutions that wait for each other: a ConvRNN has one more in each layer for every frame, ConvS5 the same few for
// any number of frames.
TEST(Table1, ConvRnnsGoFrameByFrameAndConvS5DoesNot) {
  for (const int64_t L : {8, 64, 256}) {
    EXPECT_GE(cost_of_training("convlstm", L).convolutions, kTableLayers * (L - 1));
    EXPECT_GE(cost_of_training("convrnn", L).convolutions, kTableLayers * (L - 1));
    EXPECT_GE(cost_of_training("convgru", L).convolutions, kTableLayers * (L - 1));
    EXPECT_EQ(cost_of_training("convs5", L).convolutions, cost_of_training("convs5", 1).convolutions);
  }
  EXPECT_EQ(cost_of_training("convs5", 8).convolutions, kTableLayers * 4);  // B, C and two of the block
}

// Calls of aten::mul and the elements that they multiply, while it lives.
class ScanCounter {
 public:
  ScanCounter() {
    calls = elements = 0;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&ScanCounter::see).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~ScanCounter() { at::removeCallback(handle_); }
  ScanCounter(const ScanCounter&) = delete;
  ScanCounter& operator=(const ScanCounter&) = delete;

  inline static thread_local int64_t calls = 0, elements = 0;

 private:
  static std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& call) {
    if (std::string_view(call.name()) != "aten::mul") return nullptr;
    ++calls;
    int64_t largest = 0;
    for (const auto& input : call.inputs()) {
      if (input.isTensor()) largest = std::max(largest, input.toTensor().numel());
    }
    elements += largest;
    return nullptr;
  }
  at::CallbackHandle handle_;
};

struct ScanCost {
  double depth, work;
};

ScanCost cost_of_scan(int64_t L, ops::ScanAlgorithm algorithm) {
  torch::NoGradGuard no_grad;
  const at::Tensor a = 0.9 * at::ones({4}, at::kDouble), b = randn({L, 1, 6, 4}, 2);
  ScanCounter counter;
  ops::scan(a, b, {}, {.algorithm = algorithm});
  return {double(ScanCounter::calls), double(ScanCounter::elements)};
}

// Section 2.3 and table 1, "parallelizable": the tree has O(log L) operations in a row and O(L) work, the loop L of each.
TEST(Table1, TheScanIsOfLogarithmicDepthAndLinearWork) {
  std::vector<double> lengths, tree_work, loop_depth;
  const double per_level =
      cost_of_scan(4, ops::ScanAlgorithm::tree).depth - cost_of_scan(2, ops::ScanAlgorithm::tree).depth;
  EXPECT_GT(per_level, 0);
  for (int64_t L = 16, level = 4; L <= 1024; L *= 2, ++level) {
    const ScanCost tree = cost_of_scan(L, ops::ScanAlgorithm::tree);
    EXPECT_EQ(tree.depth, per_level * level) << L;
    lengths.push_back(L);
    tree_work.push_back(tree.work);
    loop_depth.push_back(cost_of_scan(L, ops::ScanAlgorithm::naive).depth);
  }
  EXPECT_NEAR(fitted_exponent(lengths, tree_work), 1, 0.05);
  EXPECT_NEAR(fitted_exponent(lengths, loop_depth), 1, 0.05);
}

}  // namespace
}  // namespace convssm::cores
