// Wrong sizes, options and values given to cores: errors that say what was expected and what was found.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/cores/convs5.h"
#include "convssm/cores/registry.h"
#include "convssm/cores/s5.h"
#include "convssm/ssm/conv_ssm.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using testing::expect_error;

ConvS5 small() { return ConvS5(ConvS5Options{.features = 8, .state_size = 8, .groups = 4}); }
const at::Tensor x = at::ones({3, 2, 8, 4, 4});

TEST(BadUse, Options) {
  const auto make = [](const ConvS5Options& o) { return [o] { ConvS5 core(o); }; };
  expect_error(make({.features = 0, .state_size = 8}), {"[ConvS5]", "features", "0"});
  expect_error(make({.features = 8, .state_size = -8}), {"[ConvS5]", "state_size", "-8"});
  expect_error(make({.features = 32, .state_size = 7}), {"even", "7"});
  expect_error(make({.features = 32, .state_size = 8, .blocks = 3}), {"blocks", "3"});
  expect_error(make({.features = 32, .state_size = 8, .layers = 0}), {"layers", "0"});
  expect_error(make({.features = 32, .state_size = 8, .kernel_b = 0}), {"kernel_b", "1 to 1023", "got 0"});
  expect_error(make({.features = 32, .state_size = 8, .kernel_b = 1000000001}), {"kernel_b", "got 1000000001"});
  expect_error(make({.features = 32, .state_size = 8, .dt_min = 0}), {"dt_min", "0"});
  expect_error(make({.features = 32, .state_size = 8, .dt_min = 0.2, .dt_max = 0.1}), {"dt_min", "0.2"});
  expect_error(make({.features = 24, .state_size = 8, .groups = 0}), {"groups", "24", "0"});
  const auto ring = [&](double r_min, double r_max) {
    return make({.features = 32, .state_size = 8, .init = StateInit::lru, .r_min = r_min, .r_max = r_max});
  };
  expect_error(ring(0.9, 0.9), {"[ConvS5]", "r_min < r_max <= 1", "r_min 0.9 and r_max 0.9"});
  expect_error(ring(0.9, 1.5), {"[ConvS5]", "r_max 1.5"});
  expect_error(make({.features = 32, .state_size = 7, .init = StateInit::lru}), {"state_size", "even", "7"});
  expect_error(make({.features = 32, .state_size = 8, .init = StateInit::lru, .dynamics = InputDynamics::selective}),
               {"[ConvS5] dynamics selective", "init lru", "gated"});
  expect_error(make({.features = 32, .state_size = 8, .clip_eigs = false, .dynamics = InputDynamics::gated}),
               {"[ConvS5] dynamics gated", "clip_eigs"});
  expect_error(make({.features = 32, .state_size = 8, .clip_eigs = false, .dynamics = InputDynamics::liquid}),
               {"[ConvS5] dynamics liquid", "clip_eigs"});
  expect_error(make({.features = 32,
                     .state_size = 8,
                     .discretization = ssm::Discretization::euler,
                     .dynamics = InputDynamics::liquid}),
               {"[ConvS5] dynamics liquid", "zoh or bilinear", "euler"});
  expect_error(make({.features = 32,
                     .state_size = 8,
                     .discretization = ssm::Discretization::bilinear,
                     .dynamics = InputDynamics::selective}),
               {"[ConvS5] dynamics selective", "zoh", "bilinear"});
  const auto block = [&](nn::BlockKind kind) {
    return make({.features = 32, .state_size = 8, .kernel_d = 4, .activation_block = kind, .depthwise_kernel = 6});
  };
  expect_error(block(nn::BlockKind::sparse), {"[Depthwise]", "odd", "4x4"});
  expect_error(block(nn::BlockKind::convnext), {"[Depthwise]", "odd", "6x6"});
  expect_error(make({.features = 32, .state_size = 8, .depthwise_kernel = 0}), {"depthwise_kernel", "1 to 1023", "0"});
  expect_error([] { S5 core(S5Options{.features = -1, .state_size = 8}); }, {"[S5]", "features", "-1"});
  expect_error([] { S5 core(S5Options{.features = 8, .state_size = 5}); }, {"even", "5"});
}

TEST(BadUse, NamedOptions) {
  expect_error([] { make_core("convs6", {}); }, {"convs6", "did you mean 'convs5'"});
  expect_error([] { make_core("convs5", {{"featurse", 8}}); }, {"[ConvS5]", "featurse", "did you mean 'features'"});
  expect_error([] { make_core("convs5", {{"features", "8"}}); }, {"features", "whole number", "\"8\""});
  expect_error([] { make_core("convs5", {{"features", 1.5}}); }, {"features", "whole number", "1.5"});
  expect_error([] { make_core("s5", {{"seed", -1}}); }, {"seed", "at least 0", "-1"});
  expect_error([] { make_core("s5", {{"clip_eigs", 1}}); }, {"clip_eigs", "true or false"});
  expect_error([] { make_core("convs5", {{"activation_block", "resnext"}}); }, {"resnet", "'resnext'"});
  expect_error([] { make_core("convs5", {{"dynamics", "mamba"}}); }, {"[ConvS5] dynamics", "selective", "'mamba'"});
  expect_error(
      [] {
        make_core("convs5", {{"output_gate", "sigmoid"}});
      },
      {"[ConvS5] output_gate", "none", "swish", "'sigmoid'"});
  for (const char* core : {"convlstm", "convgru", "s5", "transformer"}) {
    expect_error([&] { make_core(core, {{"features", 8}, {"dynamics", "selective"}}); }, {"'dynamics'"});
  }
  expect_error([] { make_core("convs5", {{"init", "lur"}}); }, {"[ConvS5]", "hippo, gaussian or lru", "'lur'"});
  expect_error([] { make_core("convs5", {{"learned_states", true}}); }, {"did you mean 'learned_state'"});
  expect_error([] { make_core("convs5", {{"discretization", "zho"}}); }, {"zoh", "zho"});
  expect_error([] { make_core("convs5", nlohmann::json::array()); }, {"object"});
  for (const char* name : {"convs5", "s5", "hybrid", "convrnn", "convlstm", "convgru", "transformer", "performer"}) {
    nlohmann::json deep = {{"features", 8}, {"layers", int64_t{1} << 31}};
    if (name[0] == 't' || name[0] == 'p') deep["heads"] = 2;
    if (std::string(name).ends_with("s5") || name[0] == 'h') deep["state_size"] = 8;
    expect_error([&] { make_core(name, deep); }, {"layers must be 1 to 1000", "2147483648"});
  }
}

TEST(BadUse, Inputs) {
  expect_error([] { small()->forward(at::ones({3, 2, 8, 4})); }, {"[ConvS5]", "[L,B,C,H,W]", "[3,2,8,4]"});
  expect_error([] { small()->forward(at::ones({0, 2, 8, 4, 4})); }, {"[ConvS5]", "no size 0", "[0,2,8,4,4]"});
  expect_error([] { small()->forward(at::ones({3, 2, 9, 4, 4})); }, {"[L,B,8,H,W]", "[3,2,9,4,4]"});
  expect_error([] { small()->forward(x.to(at::kDouble)); }, {"float32", "float64"});
  expect_error([] { small()->forward(x.to(at::kMeta)); }, {"cpu", "meta"});
  expect_error([] { small()->forward(at::Tensor()); }, {"undefined"});
  expect_error(
      [] {
        S5(S5Options{.features = 8, .state_size = 8})->forward(at::ones({3, 2, 7}));
      },
      {"[S5]", "[3,2,7]"});
}

TEST(BadUse, States) {
  State wrong;
  wrong.set("layers.0.x", at::ones({2, 8, 4, 5}));
  expect_error([&] { small()->forward(x, wrong); }, {"layers.0.x", "[2,8,4,4]", "[2,8,4,5]"});
  State extra = small()->forward(x).state;
  extra.set("layers.1.x", at::ones({2, 8, 4, 4}));
  expect_error([&] { small()->forward(x, extra); }, {"[ConvS5]", "the states of all 1 layers, 1 in all, got 2"});
  State other;
  other.set("h", at::ones({1}));
  expect_error([&] { small()->forward(x, other); }, {"[state]", "layers.0.x", "another core"});
}

TEST(BadUse, Times) {
  const auto with_dt = [](const at::Tensor& dt) { return [dt] { small()->forward(x, {}, {dt, {}, 1}); }; };
  expect_error(with_dt(at::ones({4})), {"dt", "L = 3", "[4]"});
  expect_error(with_dt(at::tensor({1.0, 0.0, 1.0})), {"[ConvS5] dt must be positive", "got 0"});
  expect_error(with_dt(at::tensor({1.0, -2.0, 1.0})), {"[ConvS5] dt must be positive", "got -2"});
  expect_error(with_dt(at::tensor({1.0, NAN, 1.0})), {"[ConvS5] dt must be positive", "got nan"});
  expect_error(with_dt(at::ones({3}, at::kComplexFloat)), {"[ConvS5] dt must be real", "complex64"});
  expect_error([] { small()->forward(x, {}, {{}, at::zeros({3, 5}), 1}); }, {"resets", "[3,5]"});
  expect_error([] { small()->forward(x, {}, {{}, {}, 0}); }, {"step_rescale", "0"});
  ConvS5 lru(ConvS5Options{.features = 8, .state_size = 8, .init = StateInit::lru, .groups = 4});
  expect_error([&] { lru->forward(x, {}, {at::ones({3}), {}, 1}); }, {"[ConvS5] dt is not supported", "init hippo"});
  expect_error([&] { lru->forward(x, {}, {{}, {}, 0.5}); }, {"[ConvS5] step_rescale", "0.5", "discrete time"});
}

TEST(BadUse, HalfPrecision) {
  ConvS5 core = small();
  core->to(at::kBFloat16);
  expect_error([&] { core->forward(x.to(at::kBFloat16)); }, {"[ConvS5]", "float32 or float64"});
  expect_error([&] { core->step(at::Tensor(), {}); }, {"[step]", "undefined"});
}

TEST(BadUse, GatedCells) {
  expect_error([] { make_core("convlstm", {{"features", 0}}); }, {"[ConvLSTM]", "features", "0"});
  expect_error([] { make_core("convgru", {{"features", 4}, {"kernel", -1}}); }, {"[ConvGRU]", "kernel", "-1"});
  expect_error([] { make_core("convrnn", {{"features", 0}}); }, {"[ConvRNN]", "features", "0"});
  expect_error([] { make_core("convrnn", {{"features", 4}, {"kernal", 3}}); }, {"[ConvRNN]", "did you mean 'kernel'"});
  expect_error([] { make_core("convgru", {{"state_size", 4}}); }, {"[ConvGRU]", "state_size"});
  expect_error([] { make_core("convlstm", {{"features", 4}, {"dropout", 1}}); }, {"[ConvLSTM]", "dropout", "1"});
  const auto lstm = make_core("convlstm", {{"features", 8}, {"layers", 2}});
  expect_error([&] { lstm->forward(at::ones({3, 2, 8, 4})); }, {"[ConvLSTM]", "[L,B,C,H,W]", "[3,2,8,4]"});
  expect_error([&] { lstm->forward(at::ones({3, 2, 9, 4, 4})); }, {"[L,B,8,H,W]", "[3,2,9,4,4]"});
  expect_error([&] { lstm->forward(x.to(at::kDouble)); }, {"float32", "float64"});
  State state = lstm->forward(x).state;
  expect_error([&] { lstm->forward(at::ones({3, 3, 8, 4, 4}), state); }, {"layers.0.c", "[3,8,4,4]", "[2,8,4,4]"});
  expect_error(
      [&] {
        make_core("convgru", {{"features", 8}, {"layers", 2}})->forward(x, state);
      },
      {"[ConvGRU]", "the states of all 2 layers, 2 in all, got 4"});
  torch::NoGradGuard no_grad;
  lstm->parameters()[0].view({-1})[0].fill_(NAN);
  expect_error([&] { lstm->forward(x); }, {"[ConvLSTM]", "layers.0.cell.kernel", "NaN"});
}

TEST(BadUse, DivergedParametersOfTheGeneralConvSSM) {
  Stream stream(1);
  ssm::ConvSSMOptions options;
  options.features = 2;
  options.state_size = 4;
  ssm::ConvSSM model(options, stream);
  torch::NoGradGuard no_grad;
  model->c.view({-1})[3].fill_(NAN);
  expect_error([&] { model->forward(at::ones({2, 1, 2, 4, 4})); }, {"[conv_ssm]", "c holds NaN"});
}

TEST(BadUse, DivergedParameters) {
  for (const char* name :
       {"layers.0.ssm.Lambda_re", "layers.0.ssm.log_step", "layers.0.ssm.B", "layers.0.block.conv2.bias"}) {
    ConvS5 core = small();
    torch::NoGradGuard no_grad;
    core->forward(x);
    core->named_parameters()[name].view({-1})[0].fill_(NAN);
    expect_error([&] { core->forward(x); }, {"[ConvS5]", name, "NaN"});
  }
}

}  // namespace
}  // namespace convssm::cores
