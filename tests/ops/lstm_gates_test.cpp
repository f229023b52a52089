// The fused LSTM update: against plain operations on every instruction set, its gradients, its edges.
#include "convssm/ops/lstm_gates.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/ops/isa.h"
#include "tests/support.h"

namespace convssm::ops::testing {
namespace {

using convssm::testing::distance;
using convssm::testing::expect_error;
using convssm::testing::gradient_error;
using convssm::testing::max_abs;
using convssm::testing::randn;

const std::vector<std::vector<int64_t>> kStates{{3, 5}, {2, 1}, {2, 19, 3, 4}, {4, 32, 5, 5}};

std::vector<int64_t> gates_of(std::vector<int64_t> shape) {
  shape[1] *= 4;
  return shape;
}

at::Tensor both(const LstmResult& r) { return at::stack({r.c, r.h}); }

TEST(LstmGates, MatchPlainOperationsAndTheirGradients) {
  for (const std::string& isa : isa_names()) {
    force_isa(isa);
    for (const auto& shape : kStates) {
      for (const bool carried : {true, false}) {
        std::vector<at::Tensor> floats{2 * randn(gates_of(shape), 1)}, doubles;
        if (carried) floats.insert(floats.end(), {2 * randn(gates_of(shape), 2), randn(shape, 3)});
        floats.resize(3);
        for (auto& x : floats) {
          if (x.defined()) x = x.to(at::kFloat).requires_grad_(true);
          doubles.push_back(x.defined() ? x.detach().to(at::kDouble).requires_grad_(true) : x);
        }
        const at::Tensor found = both(lstm_gates(floats[0], floats[1], floats[2]));
        const at::Tensor expected = both(lstm_gates_plain(doubles[0], doubles[1], doubles[2]));
        EXPECT_LT(distance(found.to(at::kDouble), expected), 1e-6);
        const size_t inputs = carried ? 3 : 1;
        floats.resize(inputs);
        doubles.resize(inputs);
        const at::Tensor g = randn(expected.sizes(), 4).to(at::kFloat);
        const auto grads = torch::autograd::grad({found}, floats, {g});
        const auto exact = torch::autograd::grad({expected}, doubles, {g.to(at::kDouble)});
        for (size_t i = 0; i < inputs; ++i) {
          EXPECT_LT(distance(grads[i].to(at::kDouble), exact[i]) / max_abs(exact[i]), 4e-6) << isa << " " << i;
        }
      }
    }
  }
  force_isa("");
}

TEST(LstmGates, GradientsInFloat64) {
  const auto u = randn({2, 12, 2, 3}, 1), h = randn({2, 12, 2, 3}, 2), c = randn({2, 3, 2, 3}, 3);
  const auto w = randn({2, 2, 3, 2, 3}, 4);
  EXPECT_LT(gradient_error([&] { return (both(lstm_gates(u, h, c)) * w).sum(); }, {u, h, c}), 1e-8);
  EXPECT_LT(gradient_error([&] { return (lstm_gates(u, h, c).h * w[0]).sum(); }, {u, h, c}), 1e-8);
  EXPECT_LT(gradient_error([&] { return (lstm_gates(u, {}, {}).c * w[0]).sum(); }, {u}), 1e-8);
}

TEST(LstmGates, TakeAnyLayoutOfMemory) {
  const auto u = randn({2, 3, 4, 12}, 1).permute({0, 3, 1, 2}), c = randn({2, 3, 3, 4}, 2);
  const auto expected = lstm_gates_plain(u, u.contiguous(), c);
  EXPECT_LT(distance(both(lstm_gates(u, u.contiguous(), c)), both(expected)), 1e-13);
}

TEST(LstmGates, FarValuesSaturateAndNaNStays) {
  const auto far = at::tensor({1e30F, -1e30F, 1e4F, -1e4F}).view({1, 4});
  EXPECT_TRUE(at::allclose(both(lstm_gates(far, {}, {})), both(lstm_gates_plain(far, {}, {}))));
  EXPECT_TRUE(both(lstm_gates(at::full({1, 8}, NAN), {}, {})).isnan().all().item<bool>());
}

TEST(LstmGates, RefuseWrongShapesAndSecondDerivatives) {
  const auto u = at::ones({2, 8});
  expect_error([&] { lstm_gates(at::ones({2, 7}), {}, {}); }, {"[lstm_gates]", "[N,4P]", "[2,7]"});
  expect_error([&] { lstm_gates(u, at::ones({2, 4}), {}); }, {"from_h", "[2,8]", "[2,4]"});
  expect_error([&] { lstm_gates(u, {}, at::ones({2, 8})); }, {"c_prev", "[2,2]", "[2,8]"});
  expect_error([&] { lstm_gates(u, {}, at::ones({2, 2}, at::kDouble)); }, {"c_prev", "float64"});
  const auto x = at::ones({2, 8}).requires_grad_(true);
  expect_error([&] { torch::autograd::grad({lstm_gates(x, {}, {}).c.sum()}, {x}, {}, true, true); },
               {"second derivative", "lstm_gates_plain"});
}

}  // namespace
}  // namespace convssm::ops::testing
