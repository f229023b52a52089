// The laws every core obeys: forward = split forward = steps, causality, exact gradients through the state, the same
// initial values for the same seed.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/cores/registry.h"
#include "convssm/io/tensor.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using testing::distance;
using testing::randn;

// One core with options, by name.
struct LawCase {
  std::string name, core;
  nlohmann::json options;
  std::vector<int64_t> frame;            // of x, after [L,B]
  bool intervals = true, resets = true;  // which timings it takes
  double gradient_bound = 1e-7;
};

struct Subject {
  std::shared_ptr<Core> core;
  at::Tensor x;  // [L,B,...]
  bool intervals, resets;
  double gradient_bound;
};

std::vector<LawCase> convs5_cases() {
  const nlohmann::json small{{"features", 8}, {"state_size", 12}, {"layers", 3}, {"blocks", 2}, {"groups", 4}};
  std::vector<LawCase> all;
  const auto add = [&](const char* name, const nlohmann::json& more, bool intervals = true, double bound = 1e-7) {
    nlohmann::json options = small;
    options.update(more);
    all.push_back({std::string("convs5_") + name, "convs5", options, {8, 5, 6}, intervals, true, bound});
  };
  for (const char* block : {"resnet", "standard", "diag_resnet", "sparse", "convnext", "s4nd"}) {
    add(block, {{"activation_block", block}, {"axis_states", 4}});
  }
  add("half_glu", {{"activation_block", "half_glu"}, {"prenorm", true}});
  add("prenorm", {{"prenorm", true}});
  add("gaussian", {{"init", "gaussian"}, {"kernel_b", 1}, {"kernel_c", 5}, {"feedthrough", true}});
  add("learned_state", {{"learned_state", true}});
  add("lru", {{"init", "lru"}}, false);
  add("lru_learned_state", {{"init", "lru"}, {"learned_state", true}, {"r_min", 0.2}, {"r_max", 0.9}, {"max_phase", 1}},
      false);
  for (const char* dynamics : {"selective", "gated"}) add(dynamics, {{"dynamics", dynamics}}, true, 1e-6);
  add("selective_learned_state", {{"dynamics", "selective"}, {"learned_state", true}}, true, 1e-6);
  add("lru_gated", {{"init", "lru"}, {"dynamics", "gated"}, {"kernel_b", 1}}, false, 1e-6);
  // Short memories, away from the circle: there liquid coefficients have a kink.
  add("liquid", {{"dynamics", "liquid"}, {"dt_min", 0.5}, {"dt_max", 2}}, true, 1e-6);
  add("liquid_learned_state", {{"dynamics", "liquid"}, {"learned_state", true}, {"dt_min", 0.5}, {"dt_max", 2}}, true,
      1e-6);
  add("output_gate", {{"output_gate", "swish"}}, true, 1e-6);
  return all;
}

std::vector<LawCase> token_cases() {
  const nlohmann::json tokens{{"features", 8}, {"layers", 2}, {"heads", 2}, {"mlp", 12}};
  std::vector<LawCase> all;
  const auto add = [&](const char* name, const char* core, const nlohmann::json& more,
                       const std::vector<int64_t>& frame, double bound = 1e-7) {
    nlohmann::json options = tokens;
    options.update(more);
    all.push_back({name, core, options, frame, false, false, bound});
  };
  add("transformer", "transformer", nlohmann::json::object(), {8});
  add("transformer_tokens_window", "transformer", {{"tokens", {2, 1}}, {"window", 3}}, {8, 2, 1});
  add("transformer_window", "transformer", {{"window", 1}}, {8});
  add("transformer_recompute", "transformer", {{"recompute", true}}, {8});
  add("transformer_recompute_window", "transformer", {{"recompute", true}, {"window", 4}, {"tokens", {1, 2}}},
      {8, 1, 2});
  // The maxima of FAVOR+ are constants in gradients, which is exact but for the terms with epsilon.
  add("performer", "performer", {{"random_features", 12}, {"epsilon", 0}}, {8});
  add("performer_tokens", "performer", {{"random_features", 12}, {"epsilon", 0}, {"tokens", {2, 2}}}, {8, 2, 2});
  add("performer_epsilon", "performer", {{"random_features", 12}}, {8}, 1e-2);
  return all;
}

std::vector<LawCase> hybrid_cases() {
  const nlohmann::json small{{"features", 12}, {"state_size", 8}, {"groups", 4},
                             {"heads", 2},     {"window", 4},     {"mlp", 16}};
  std::vector<LawCase> all;
  const auto add = [&](const char* name, const nlohmann::json& more, bool intervals = true) {
    nlohmann::json options = small;
    options.update(more);
    all.push_back({name, "hybrid", options, {12, 4, 6}, intervals, false});
  };
  add("hybrid", {{"layers", 4}});
  add("hybrid_patch", {{"layers", 3}, {"patch", 2}, {"prenorm", true}});
  add("hybrid_frame", {{"window", 1}});
  add("hybrid_attention", {{"layers", 2}, {"attention_every", 1}, {"patch", 2}}, false);
  add("hybrid_lru", {{"layers", 4}, {"attention_every", 3}, {"init", "lru"}, {"learned_state", true}, {"patch", 2}},
      false);
  add("hybrid_long_window", {{"window", 20}, {"patch", 2}});
  return all;
}

std::vector<LawCase> law_cases() {
  std::vector<LawCase> all = convs5_cases();
  all.push_back({"s5", "s5", {{"features", 8}, {"state_size", 12}, {"layers", 3}, {"blocks", 2}}, {8}});
  for (const char* name : {"convrnn", "convlstm", "convgru"}) {
    all.push_back({name, name, {{"features", 5}, {"layers", 2}}, {5, 4, 6}, false});
  }
  for (const std::vector<LawCase>& more : {hybrid_cases(), token_cases()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

Subject make_subject(const LawCase& c, at::ScalarType type, int64_t L = 11) {
  std::vector<int64_t> shape{L, 2};
  shape.insert(shape.end(), c.frame.begin(), c.frame.end());
  Subject s{make_core(c.core, c.options), randn(shape, 1).to(type), c.intervals, c.resets, c.gradient_bound};
  at::NoGradGuard no_grad;
  for (auto& item : s.core->named_parameters()) {
    // A learned state begins at zero, which would hide it.
    if (item.key().ends_with(".x0")) item.value().copy_(randn(item.value().sizes(), 6));
    // So do input-dependent dynamics and the weights of an output gate.
    const bool hidden = item.key().find(".dynamics.") != std::string::npos || item.key().ends_with(".gate.weight");
    const double size = item.key().ends_with(".dynamics.l") ? 0.01 : 0.1;
    if (hidden) item.value().copy_(size * randn(item.value().sizes(), 7));
    // Frames behind weights of 0.02 are so small that the norm after them bends within a step of a finite difference.
    if (item.key().ends_with(".depthwise.weight")) item.value().mul_(20);
  }
  s.core->to(type);
  return s;
}

class CoreLaw : public ::testing::TestWithParam<LawCase> {
 protected:
  Subject subject(at::ScalarType type, int64_t L = 11) const { return make_subject(GetParam(), type, L); }
};

INSTANTIATE_TEST_SUITE_P(All, CoreLaw, ::testing::ValuesIn(law_cases()), [](const auto& i) { return i.param.name; });

std::vector<Timing> timings(const Subject& s) {
  const int64_t L = s.x.size(0), B = s.x.size(1);
  const at::Tensor resets = at::zeros({L, B}, at::kBool);
  resets[L / 2][0].fill_(true);
  std::vector<Timing> all{{}};
  if (s.resets) all.push_back({{}, resets.select(1, 0), 1});
  if (s.intervals) {
    all.push_back({{}, {}, 0.5});
    all.push_back({randn({L}, 4).abs() + 0.1, {}, 1});
    all.push_back({randn({L, B}, 5).abs() + 0.1, s.resets ? resets : at::Tensor(), 2});
  } else if (s.resets) {
    all.push_back({{}, resets, 1});
  }
  return all;
}

Timing at_frame(const Timing& timing, int64_t k) {
  Timing one = timing;
  if (one.dt.defined()) one.dt = one.dt[k];
  if (one.resets.defined()) one.resets = one.resets[k];
  return one;
}

double state_distance(const State& a, const State& b) {
  double worst = 0;
  for (const auto& [name, value] : a.items()) {
    if (value.numel() > 0) worst = std::max(worst, distance(value, b.get(name)));
    if (value.sizes() != b.get(name).sizes()) worst = INFINITY;
  }
  return worst;
}

TEST_P(CoreLaw, SplitAnywhereAndStepsGiveTheSame) {
  torch::NoGradGuard no_grad;
  for (const auto& [type, bound] :
       std::vector<std::pair<at::ScalarType, double>>{{at::kDouble, 1e-12}, {at::kFloat, 1e-5}}) {
    const Subject s = subject(type);
    const int64_t L = s.x.size(0);
    for (const Timing& timing : timings(s)) {
      const CoreOutput whole = s.core->forward(s.x, {}, timing);
      for (int64_t cut = 1; cut < L; ++cut) {
        const CoreOutput first = s.core->forward(s.x.slice(0, 0, cut), {}, ssm::slice(timing, 0, cut));
        const CoreOutput second = s.core->forward(s.x.slice(0, cut), first.state, ssm::slice(timing, cut, L));
        EXPECT_LT(distance(at::cat({first.y, second.y}), whole.y), bound) << cut;
        EXPECT_LT(state_distance(second.state, whole.state), bound) << cut;
      }
      State state;
      for (int64_t k = 0; k < L; ++k) {
        const CoreOutput one = s.core->step(s.x[k], state, at_frame(timing, k));
        EXPECT_LT(distance(one.y, whole.y[k]), bound) << k;
        state = one.state;
      }
    }
  }
}

TEST_P(CoreLaw, TheFutureDoesNotChangeThePast) {
  torch::NoGradGuard no_grad;
  const Subject s = subject(at::kFloat);
  const at::Tensor before = s.core->forward(s.x).y;
  at::Tensor changed = s.x.clone();
  changed.slice(0, 7) += 1;
  const at::Tensor after = s.core->forward(changed).y;
  EXPECT_TRUE(at::allclose(before.slice(0, 0, 7), after.slice(0, 0, 7), 0, 1e-6));
  EXPECT_GT(distance(before.slice(0, 7), after.slice(0, 7)), 0.1);
}

TEST_P(CoreLaw, AResetIsANewBeginning) {
  torch::NoGradGuard no_grad;
  const Subject s = subject(at::kDouble);
  if (!s.resets) return;  // refused, see below
  const at::Tensor resets = at::zeros({s.x.size(0)}, at::kBool);
  resets[6].fill_(true);
  const at::Tensor y = s.core->forward(s.x, {}, {{}, resets, 1}).y;
  EXPECT_LT(distance(y.slice(0, 0, 6), s.core->forward(s.x.slice(0, 0, 6)).y), 1e-12);
  EXPECT_LT(distance(y.slice(0, 6), s.core->forward(s.x.slice(0, 6)).y), 1e-12);
}

TEST_P(CoreLaw, DtOfOneIsNoDt) {
  torch::NoGradGuard no_grad;
  const Subject s = subject(at::kDouble);
  if (!s.intervals) return;
  const at::Tensor plain = s.core->forward(s.x).y;
  EXPECT_LT(distance(s.core->forward(s.x, {}, {at::ones({s.x.size(0)}), {}, 1}).y, plain), 1e-12);
  const at::Tensor half = at::full({s.x.size(0)}, 0.5, at::kDouble);
  EXPECT_LT(distance(s.core->forward(s.x, {}, {half, {}, 1}).y, s.core->forward(s.x, {}, {{}, {}, 0.5}).y), 1e-12);
}

// A timing that a core cannot follow is an error, never ignored.
TEST_P(CoreLaw, OtherTimingsAreRefused) {
  const Subject s = subject(at::kFloat);
  const at::Tensor ones = at::ones({s.x.size(0)});
  if (!s.intervals) {
    testing::expect_error([&] { s.core->forward(s.x, {}, {ones, {}, 1}); }, {"dt is not supported"});
    testing::expect_error([&] { s.core->forward(s.x, {}, {{}, {}, 2}); }, {"step_rescale must be 1, got 2"});
  }
  if (!s.resets) testing::expect_error([&] { s.core->forward(s.x, {}, {{}, ones, 1}); }, {"resets"});
}

// A value of the state that has a gradient: the sums of FAVOR+ are stored times exp(-max).
at::Tensor state_value(const State& state, const std::string& name) {
  const at::Tensor value = state.get(name);
  if (name.ends_with(".max") || !value.is_floating_point()) return at::zeros({});
  if (!name.ends_with(".s") && !name.ends_with(".z")) return value;
  at::Tensor scale = state.get(name.substr(0, name.rfind('.')) + ".max").exp();
  while (scale.dim() < value.dim()) scale = scale.unsqueeze(-1);
  return value * scale;
}

// Along one random direction in all parameters, inputs and states at once, with a central difference of fourth order.
double directional_error(Core& core, const at::Tensor& x, const State& start, const Timing& timing) {
  std::vector<at::Tensor> points = core.parameters();
  points.push_back(x);
  for (const auto& [name, value] : start.items()) {
    const bool variable = value.is_floating_point() && value.numel() > 0 && !name.ends_with(".max");
    if (variable) points.push_back(value);
  }
  std::vector<at::Tensor> directions;
  for (size_t i = 0; i < points.size(); ++i) {
    points[i].requires_grad_(true);
    directions.push_back(randn(points[i].sizes(), 100 + i));
  }
  const at::Tensor weights = randn(x.sizes(), 9);
  const auto loss = [&] {
    const CoreOutput out = core.forward(x, start, timing);
    at::Tensor sum = (out.y * weights).sum();
    for (const auto& [name, value] : out.state.items()) sum = sum + state_value(out.state, name).pow(2).sum();
    return sum;
  };
  const auto grads = torch::autograd::grad({loss()}, points, {}, {}, false, true);
  double slope = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (grads[i].defined()) slope += (grads[i] * directions[i]).sum().item<double>();
  }
  torch::NoGradGuard no_grad;
  const auto at = [&](double h) {
    for (size_t i = 0; i < points.size(); ++i) points[i].add_(directions[i], h);
    const double value = loss().item<double>();
    for (size_t i = 0; i < points.size(); ++i) points[i].sub_(directions[i], h);
    return value;
  };
  const double h = 1e-4;
  const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
  return std::abs(slope - numeric) / std::abs(numeric);
}

TEST_P(CoreLaw, GradientsOfEverythingMatchFiniteDifferences) {
  for (const bool with_state : {false, true}) {
    const Subject s = subject(at::kDouble, 5);
    State start;
    if (with_state) {
      torch::NoGradGuard no_grad;
      start = s.core->forward(s.x).state.clone();
    }
    for (const Timing& timing : timings(s)) {
      EXPECT_LT(directional_error(*s.core, s.x.detach().clone(), start.detach().clone(), timing), s.gradient_bound);
    }
  }
}

TEST_P(CoreLaw, EachParameterOfTheStateSpaceHasItsGradient) {
  const Subject s = subject(at::kDouble, 4);
  const at::Tensor weights = randn(s.x.sizes(), 9);
  const auto loss = [&] { return (s.core->forward(s.x).y * weights).sum(); };
  const auto named = s.core->named_parameters();
  std::vector<at::Tensor> inputs;
  for (const auto& item : named) {
    if (item.value().numel() < 20 && item.key().starts_with("layers.1.ssm.")) inputs.push_back(item.value());
  }
  if (inputs.empty()) return;  // not a state space
  const bool lru = named.contains("layers.1.ssm.nu"), learned = named.contains("layers.1.ssm.x0");
  ASSERT_GE(inputs.size(), (lru ? 2u : 3u) + (learned ? 1u : 0u));  // Lambda_re, Lambda_im, log_step or nu, theta; x0
  EXPECT_LT(testing::gradient_error(loss, inputs), 1e-6);
}

TEST(CoreLaws, KeptKernelsFollowTheParameters) {
  torch::NoGradGuard no_grad;
  const Subject s = make_subject(law_cases()[0], at::kFloat);
  const at::Tensor before = s.core->forward(s.x).y;
  for (auto& item : s.core->named_parameters()) {
    if (!item.key().starts_with("layers.1.ssm")) continue;
    const at::Tensor old = item.value().clone();
    item.value().mul_(1.3);
    EXPECT_GT(distance(s.core->forward(s.x).y, before), 1e-4) << item.key();
    item.value().copy_(old);
    EXPECT_LT(distance(s.core->forward(s.x).y, before), 1e-6) << item.key();
  }
}

// SGD writes through data(), which no version tells of.
TEST(CoreLaws, KeptKernelsFollowTheOptimizer) {
  const Subject s = make_subject(law_cases()[0], at::kFloat);
  torch::optim::SGD optimizer(s.core->parameters(), 0.1);
  const auto evaluate = [&] {
    torch::NoGradGuard no_grad;
    return s.core->forward(s.x).y;
  };
  const at::Tensor before = evaluate();
  s.core->forward(s.x).y.square().sum().backward();
  optimizer.step();
  const at::Tensor after = evaluate();
  EXPECT_GT(distance(after, before), 1e-3);
  EXPECT_LT(distance(after, s.core->forward(s.x).y.detach()), 1e-5);
  for (auto& p : s.core->parameters()) p.data().mul_(0.9);
  s.core->eval();
  EXPECT_LT(distance(evaluate(), s.core->forward(s.x).y.detach()), 1e-5);
}

TEST(CoreLaws, SeedsDecideTheInitialValues) {
  const auto values = [](uint64_t seed) {
    const auto core = make_core("convs5", {{"features", 32}, {"state_size", 32}, {"seed", seed}});
    return core->named_parameters()["layers.0.ssm.B"];
  };
  EXPECT_TRUE(at::equal(values(3), values(3)));
  EXPECT_FALSE(at::equal(values(3), values(4)));
}

TEST_P(CoreLaw, AStateSavedToAFileGoesOn) {
  torch::NoGradGuard no_grad;
  const auto path = std::filesystem::temp_directory_path() / fmt::format("convssm_state_{}.safetensors", getpid());
  const Subject s = subject(at::kFloat);
  const State state = s.core->forward(s.x).state;
  io::save_tensors(path.string(), state.items());
  State loaded;
  for (auto& [name, value] : io::load_tensors(path.string())) loaded.set(name, value);
  EXPECT_TRUE(at::equal(s.core->forward(s.x, state).y, s.core->forward(s.x, loaded).y));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace convssm::cores
