// Sections 1 and 2.2: ConvRNNs suffer from vanishing gradients, ConvS5 is initialized to reach far back. Measured at initial
// values: the norm of the gradient of (a random projection of) frame t with respect to frame t - k, k up to 600.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "convssm/cores/convlstm.h"
#include "convssm/cores/convrnn.h"
#include "convssm/cores/convs5.h"
#include "tests/paper/naive.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

using testing::Edge;
using testing::kernel_matrix;
using testing::randn;

constexpr int64_t kReach = 600, kReachFeatures = 4, kSide = 3, kPixels = kSide * kSide;

at::Tensor reach_input() { return randn({kReach + 1, 1, kReachFeatures, kSide, kSide}, 1); }
at::Tensor reach_projection() { return randn({1, kReachFeatures, kSide, kSide}, 2); }

// Of the last frame of `run` with respect to each input frame, the nearest first.
std::vector<double> gradient_norms(const std::function<at::Tensor(const at::Tensor&)>& run) {
  const at::Tensor x = reach_input().requires_grad_(true);
  const at::Tensor gradient = torch::autograd::grad({(run(x)[kReach] * reach_projection()).sum()}, {x})[0];
  std::vector<double> norms;
  for (int64_t k = 0; k <= kReach; ++k) norms.push_back(gradient[kReach - k].norm().item<double>());
  return norms;
}

std::vector<double> gradient_norms(Core& core) {
  core.to(at::kDouble);
  return gradient_norms([&](const at::Tensor& x) { return core.forward(x).y; });
}

ConvS5Options reach_options(int64_t layers, uint64_t seed) {
  return {.features = kReachFeatures, .state_size = 8, .layers = layers, .groups = 2, .seed = seed};
}

// The largest |exp(lambda Delta)| of all layers.
double slowest_decay(const torch::nn::Module& core) {
  double slowest = 0;
  const auto p = core.named_parameters();
  for (const auto& item : p) {
    const size_t end = item.key().rfind("Lambda_re");
    if (end == std::string::npos) continue;
    const at::Tensor delta = p[item.key().substr(0, end) + "log_step"].exp().squeeze(1);
    slowest = std::max(slowest, at::exp(item.value() * delta).max().item<double>());
  }
  return slowest;
}

// One ConvLSTM layer written out: out = LN(u + h).
at::Tensor lstm_by_hand(const at::Tensor& x, const at::Tensor& kernel) {
  at::Tensor c = at::zeros_like(x[0]), h = at::zeros_like(x[0]);
  for (int64_t t = 0; t < x.size(0); ++t) {
    const auto gates = at::conv2d(at::cat({x[t], h}, 1), kernel, {}, 1, 1).chunk(4, 1);
    c = at::sigmoid(gates[1]) * c + at::sigmoid(gates[0]) * at::tanh(gates[3]);
    h = at::sigmoid(gates[2]) * at::tanh(c);
  }
  const at::Tensor sum = (x[-1] + h).permute({0, 2, 3, 1});
  return at::layer_norm(sum, {kReachFeatures}, {}, {}, 1e-6).permute({0, 3, 1, 2}).unsqueeze(0).expand_as(x);
}

TEST(GradientReach, OfConvLSTMIsThatOfTheCellWrittenOut) {
  ConvLSTM core(ConvLSTMOptions{{.features = kReachFeatures}});
  const auto norms = gradient_norms(*core);
  const at::Tensor kernel = core->parameters()[0].detach();
  ASSERT_EQ(kernel.dim(), 4);
  const auto expected = gradient_norms([&](const at::Tensor& x) { return lstm_by_hand(x, kernel); });
  for (int64_t k = 0; k <= kReach; k += 10) EXPECT_NEAR(norms[k] / expected[k], 1, 1e-6) << k;
}

// The forget gates begin near one half, so a layer forgets like 2^-k or somewhat slower.
TEST(GradientReach, OfConvLSTMFallsExponentially) {
  for (const int64_t layers : {1, 2, 4}) {
    ConvLSTM core(ConvLSTMOptions{{.features = kReachFeatures, .layers = layers, .seed = 1}});
    const auto norms = gradient_norms(*core);
    EXPECT_GT(norms[1], 0.05) << layers;
    for (int64_t k = 1; k <= kReach; ++k) EXPECT_LT(norms[k], norms[0] * std::pow(0.75, k)) << layers << " " << k;
  }
}

// Though its kernel only turns the state: tanh shrinks the gradient wherever the inputs are not small.
TEST(GradientReach, OfConvRNNFallsExponentially) {
  for (const int64_t layers : {1, 2, 4}) {
    ConvRNN core(ConvRNNOptions{{.features = kReachFeatures, .layers = layers, .seed = 1}});
    const auto norms = gradient_norms(*core);
    EXPECT_GT(norms[1], 0.05) << layers;
    for (int64_t k = 1; k <= kReach; ++k) EXPECT_LT(norms[k], norms[0] * std::pow(0.9, k)) << layers << " " << k;
    RecordProperty(fmt::format("gradient_600_frames_back_{}_layers", layers), fmt::format("{:.1e}", norms[kReach]));
    RecordProperty(fmt::format("gradient_100_frames_back_{}_layers", layers), fmt::format("{:.1e}", norms[100]));
  }
}

struct LayerGradient {
  at::Tensor of_state, input;  // complex: d loss / d x_t [P,H W], rows of B as a matrix [P,H W,U H W]
  at::Tensor a;                // [P]
};

// The last frame of one layer written out: states, y = 2 Re(C x), ResNet block, residual and norm; the gradient of its
// projection with respect to the states of the last frame.
LayerGradient layer_by_hand(const ConvS5& core) {
  const auto p = core->named_parameters();
  const auto get = [&](const std::string& name) { return p["layers.0." + name].detach(); };
  const at::Tensor lambda = at::complex(get("ssm.Lambda_re"), get("ssm.Lambda_im"));
  const at::Tensor a = at::exp(lambda * get("ssm.log_step").exp().squeeze(1));
  const int64_t P = a.numel(), U = kReachFeatures;
  const at::Tensor b =
      ((a - 1) / lambda).view({P, 1, 1, 1}) * at::view_as_complex(get("ssm.B").contiguous()).view({P, U, 3, 3});
  const at::Tensor c = at::view_as_complex(get("ssm.C").contiguous()).permute({3, 2, 0, 1});
  const at::Tensor b_matrix = kernel_matrix(b, kSide, kSide, Edge::zero);
  const at::Tensor c_matrix = kernel_matrix(c, kSide, kSide, Edge::zero);
  const at::Tensor input = reach_input(), per_pixel = a.repeat_interleave(kPixels);
  at::Tensor x = at::zeros({P * kPixels}, at::kComplexDouble);
  for (int64_t t = 0; t <= kReach; ++t) x = per_pixel * x + at::mv(b_matrix, input[t].flatten().to(at::kComplexDouble));

  const at::Tensor y = (2 * at::real(at::mv(c_matrix, x))).view({1, U, kSide, kSide}).requires_grad_(true);
  const auto norm = [](const at::Tensor& v) { return at::gelu(at::group_norm(v, 2, {}, {}, 1e-6), "tanh"); };
  const at::Tensor h = at::conv2d(norm(y), get("block.conv1.weight"), {}, 1, 1);
  const at::Tensor out = at::gelu(y + at::conv2d(norm(h), get("block.conv2.weight"), {}, 1, 1), "tanh") + input[kReach];
  const at::Tensor normed = at::layer_norm(out.permute({0, 2, 3, 1}), {U}, {}, {}, 1e-6).permute({0, 3, 1, 2});
  const at::Tensor w = torch::autograd::grad({(normed * reach_projection()).sum()}, {y})[0].flatten();
  const at::Tensor of_state = 2 * at::mv(c_matrix.t(), w.to(at::kComplexDouble));
  return {of_state.view({P, kPixels}), b_matrix.view({P, kPixels, U * kPixels}), a};
}

// By hand the gradient with respect to frame t - k is 2 Re sum over p of w C_p a_p^k B_p: every state fades at the rate of
// its own eigenvalue, and 600 frames back it is what the slow ones leave.
TEST(GradientReach, OfConvS5IsASumOverItsEigenvalues) {
  for (const uint64_t seed : {0, 1, 2}) {
    ConvS5 core(reach_options(1, seed));
    const auto norms = gradient_norms(*core);
    const LayerGradient g = layer_by_hand(core);
    const at::Tensor each = at::einsum("px,pxu->pu", {g.of_state, g.input});
    const int64_t slow = at::abs(g.a).argmax().item<int64_t>();
    const double slow_share = at::abs(each[slow]).norm().item<double>(), slowest = at::abs(g.a[slow]).item<double>();
    for (int64_t k = 1; k <= kReach; ++k) {
      const at::Tensor powers = at::pow(g.a, double(k));
      const double expected = at::real(at::mv(each.t(), powers)).norm().item<double>();
      EXPECT_NEAR(norms[k] / expected, 1, 1e-6) << k;
      EXPECT_GT(norms[k], 0.5 * slow_share * std::pow(slowest, k)) << k;
    }
  }
}

// In stacks: whatever the depth, the gradient falls no faster than the slowest eigenvalue, but for a constant.
TEST(GradientReach, OfConvS5StaysWithItsSlowestEigenvalue) {
  for (const int64_t layers : {1, 2, 4}) {
    ConvS5 core(reach_options(layers, 1));
    const auto norms = gradient_norms(*core);
    const double slowest = slowest_decay(*core);
    EXPECT_GT(std::pow(slowest, kReach), 0.5);
    for (int64_t k = 1; k <= kReach; ++k) {
      EXPECT_GT(norms[k], 0.01 * norms[1] * std::pow(slowest, k)) << layers << " " << k;
    }
  }
}

}  // namespace
}  // namespace convssm::cores
