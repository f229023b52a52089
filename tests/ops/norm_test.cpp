// Activations, norms and convolutions: the kernels against plain tensor operations in float64, on every instruction
// set, and gradients against finite differences.
#include "convssm/ops/norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/ops/conv2d.h"
#include "convssm/ops/dense.h"
#include "convssm/ops/isa.h"
#include "convssm/ops/memory_meter.h"
#include "tests/support.h"

namespace convssm::ops::testing {
namespace {

using convssm::testing::distance;
using convssm::testing::gradient_error;
using convssm::testing::max_abs;
using convssm::testing::randn;

const std::vector<Activation> kActivations{Activation::identity, Activation::relu, Activation::gelu,
                                           Activation::swish,    Activation::elu,  Activation::quick_gelu,
                                           Activation::gelu_erf};

// f in float32 against f in float64 of the same values.
void expect_float_close(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& f,
                        const std::function<at::Tensor(const std::vector<at::Tensor>&)>& plain,
                        std::vector<at::Tensor> inputs, double bound) {
  std::vector<at::Tensor> floats, doubles;
  for (const auto& x : inputs) {
    floats.push_back(x.to(at::kFloat).requires_grad_(true));
    doubles.push_back(floats.back().detach().to(at::kDouble).requires_grad_(true));
  }
  const at::Tensor y = f(floats), expected = plain(doubles);
  EXPECT_LT(distance(y.to(at::kDouble), expected) / max_abs(expected), bound);
  const at::Tensor g = randn(y.sizes(), 77);
  const auto found = torch::autograd::grad({y}, floats, {g.to(at::kFloat)});
  const auto exact = torch::autograd::grad({expected}, doubles, {g.to(at::kFloat).to(at::kDouble)});
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT(distance(found[i].to(at::kDouble), exact[i]) / max_abs(exact[i]), 4 * bound) << "gradient " << i;
  }
}

const std::vector<std::vector<int64_t>> kShapes{{1, 4, 2, 2}, {3, 12, 5, 7}, {2, 40, 16, 16}, {5, 20}};

TEST(Activation, MatchesPlainOperations) {
  for (const std::string& isa : isa_names()) {
    force_isa(isa);
    for (const auto activation : kActivations) {
      for (const auto& shape : kShapes) {
        const auto x = randn(shape, 1) * 3, y = randn(shape, 2);
        expect_float_close([&](const auto& in) { return activate(in[0], activation); },
                           [&](const auto& in) { return activate_plain(in[0], activation); }, {x}, 1e-6);
        expect_float_close([&](const auto& in) { return add_activate(in[0], in[1], activation); },
                           [&](const auto& in) { return activate_plain(in[0] + in[1], activation); }, {x, y}, 1e-6);
      }
    }
  }
  force_isa("");
}

TEST(Activation, FarValuesStayFinite) {
  const at::Tensor x = at::tensor({-1e30f, -1000.0f, -90.0f, -0.0f, 0.0f, 90.0f, 1000.0f, 1e6f}).requires_grad_(true);
  for (const auto activation : kActivations) {
    const at::Tensor y = activate(x, activation);
    EXPECT_TRUE(at::allclose(y, activate_plain(x, activation), 1e-6, 1e-20)) << name(activation);
    EXPECT_TRUE(at::isfinite(torch::autograd::grad({y.sum()}, {x})[0]).all().item<bool>()) << name(activation);
  }
}

TEST(Activation, NaNStaysNaN) {
  for (const auto activation : kActivations) {
    EXPECT_TRUE(activate(at::full({9}, NAN), activation).isnan().all().item<bool>()) << name(activation);
  }
}

TEST(Activation, GradientsInFloat64) {
  for (const auto activation : kActivations) {
    const auto x = randn({2, 3, 2, 2}, 3), y = randn({2, 3, 2, 2}, 4), w = randn({2, 3, 2, 2}, 5);
    EXPECT_LT(gradient_error([&] { return (activate(x, activation) * w).sum(); }, {x}), 1e-8) << name(activation);
    EXPECT_LT(gradient_error([&] { return (add_activate(x, y, activation) * w).sum(); }, {x, y}), 1e-8);
  }
}

TEST(GroupNorm, MatchesPlainOperations) {
  for (const std::string& isa : isa_names()) {
    force_isa(isa);
    for (const auto& shape : kShapes) {
      for (const int64_t groups : {1, 4}) {
        for (const auto activation : {Activation::identity, Activation::gelu}) {
          const auto x = randn(shape, 1) * 2 + 3;
          const auto w = randn({shape[1]}, 2), b = randn({shape[1]}, 3);
          expect_float_close([&](const auto& in) { return ops::group_norm(in[0], groups, in[1], in[2], activation); },
                             [&](const auto& in) { return group_norm_plain(in[0], groups, in[1], in[2], activation); },
                             {x, w, b}, 4e-6);
        }
      }
    }
  }
  force_isa("");
}

TEST(GroupNorm, MatchesLibtorch) {
  const auto x = randn({3, 12, 5, 7}, 1), w = randn({12}, 2), b = randn({12}, 3);
  EXPECT_LT(distance(ops::group_norm(x, 4, w, b), at::group_norm(x, 4, w, b, kNormEps)), 1e-12);
}

TEST(GroupNorm, GradientsInFloat64) {
  for (const auto activation : kActivations) {
    const auto x = randn({2, 4, 3, 2}, 4), w = randn({4}, 5), b = randn({4}, 6), g = randn({2, 4, 3, 2}, 7);
    EXPECT_LT(gradient_error([&] { return (ops::group_norm(x, 2, w, b, activation) * g).sum(); }, {x, w, b}), 1e-7)
        << name(activation);
  }
}

TEST(GroupNorm, ALargeMeanDoesNotHideTheVariance) {
  const auto x = randn({1, 4, 16, 16}, 8) + 1e3;
  const auto w = at::ones({4}, at::kDouble), b = at::zeros({4}, at::kDouble);
  const auto rounded = x.to(at::kFloat);
  const auto found = ops::group_norm(rounded, 2, w.to(at::kFloat), b.to(at::kFloat));
  EXPECT_LT(distance(found.to(at::kDouble), group_norm_plain(rounded.to(at::kDouble), 2, w, b)), 3e-4);
}

// Values far from the others, where they are most likely to be taken for the mean.
TEST(GroupNorm, OutliersDoNotHideTheVariance) {
  const auto w = at::ones({4}, at::kDouble), b = at::zeros({4}, at::kDouble);
  for (const int64_t pixel : {0, 63, 64, 4095}) {
    auto x = randn({1, 4, 64, 64}, 8);
    x.view({4, 4096}).select(1, pixel).fill_(1e3);
    const auto rounded = x.to(at::kFloat);
    const auto found = ops::group_norm(rounded, 2, w.to(at::kFloat), b.to(at::kFloat)).to(at::kDouble);
    const auto exact = group_norm_plain(rounded.to(at::kDouble), 2, w, b);
    EXPECT_LT((distance(found, exact) / max_abs(exact)), 1e-5) << pixel;
  }
}

TEST(GroupNorm, AConstantGroupGivesTheBias) {
  const auto b = randn({4}, 9).to(at::kFloat);
  const auto y = ops::group_norm(at::full({2, 4, 1, 1}, 3.3F), 4, at::ones({4}), b);
  EXPECT_TRUE(at::equal(y[1].view({4}), b));
}

TEST(LayerNorm, MatchesPlainOperations) {
  for (const std::string& isa : isa_names()) {
    force_isa(isa);
    for (const auto& shape : kShapes) {
      const auto x = randn(shape, 1) * 2 + 3, y = randn(shape, 2);
      const auto w = randn({shape[1]}, 3), b = randn({shape[1]}, 4);
      expect_float_close([&](const auto& in) { return ops::layer_norm(in[0], in[1], in[2]); },
                         [&](const auto& in) { return layer_norm_plain(in[0], in[1], in[2]); }, {x, w, b}, 4e-6);
      expect_float_close([&](const auto& in) { return add_layer_norm(in[0], in[1], in[2], in[3]); },
                         [&](const auto& in) { return layer_norm_plain(in[0] + in[1], in[2], in[3]); }, {x, y, w, b},
                         4e-6);
    }
  }
  force_isa("");
}

TEST(LayerNorm, MatchesLibtorch) {
  const auto x = randn({3, 12, 5, 7}, 1), w = randn({12}, 2), b = randn({12}, 3);
  const auto expected = at::layer_norm(x.permute({0, 2, 3, 1}), {12}, w, b, kNormEps).permute({0, 3, 1, 2});
  EXPECT_LT(distance(ops::layer_norm(x, w, b), expected), 1e-12);
}

TEST(LayerNorm, KeepsItsSumOnlyForGradients) {
  const auto x = at::ones({4, 64, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast), y = x.clone();
  const auto w = at::ones({64}).requires_grad_(true), b = at::zeros({64}).requires_grad_(true);
  const auto peak = [&] {
    MemoryMeter meter;
    add_layer_norm(x, y, w, b);
    return static_cast<double>(meter.peak()) / static_cast<double>(x.nbytes());
  };
  EXPECT_GT(peak(), 1.9);
  const at::NoGradGuard no_grad;
  EXPECT_LT(peak(), 1.1);
}

TEST(LayerNorm, GradientsInFloat64) {
  const auto x = randn({2, 5, 2, 3}, 4), y = randn({2, 5, 2, 3}, 5), w = randn({5}, 6), b = randn({5}, 7);
  const auto g = randn({2, 5, 2, 3}, 8);
  EXPECT_LT(gradient_error([&] { return (ops::layer_norm(x, w, b) * g).sum(); }, {x, w, b}), 1e-7);
  EXPECT_LT(gradient_error([&] { return (add_layer_norm(x, y, w, b) * g).sum(); }, {x, y, w, b}), 1e-7);
}

TEST(Norms, SecondDerivativesOrAClearRefusal) {
  const auto x = randn({2, 4, 2, 2}, 1).requires_grad_(true), w = randn({4}, 2), b = randn({4}, 3);
  const auto second = [&](const at::Tensor& y) {
    return torch::autograd::grad({torch::autograd::grad({y.pow(3).sum()}, {x}, {}, true, true)[0].pow(2).sum()},
                                 {x})[0];
  };
  EXPECT_LT(distance(second(ops::group_norm(x, 2, w, b)), second(group_norm_plain(x, 2, w, b))), 1e-9);
  EXPECT_LT(distance(second(ops::layer_norm(x, w, b)), second(layer_norm_plain(x, w, b))), 1e-9);
  EXPECT_LT(distance(second(activate(x, Activation::gelu)), second(activate_plain(x, Activation::gelu))), 1e-9);
  const std::string text = convssm::testing::error_text([&] { second(add_activate(x, x, Activation::gelu)); });
  EXPECT_NE(text.find("activate(x + y)"), std::string::npos) << text;
}

// The definition, written out.
at::Tensor convolve(const at::Tensor& x, const at::Tensor& w, int64_t stride) {
  const int64_t H = x.size(2), W = x.size(3), kh = w.size(2), kw = w.size(3);
  const int64_t oh = (H + stride - 1) / stride, ow = (W + stride - 1) / stride;
  const int64_t top = std::max<int64_t>((oh - 1) * stride + kh - H, 0) / 2;
  const int64_t left = std::max<int64_t>((ow - 1) * stride + kw - W, 0) / 2;
  at::Tensor y = at::zeros({x.size(0), w.size(0), oh, ow}, x.options());
  for (int64_t i = 0; i < oh; ++i) {
    for (int64_t j = 0; j < ow; ++j) {
      for (int64_t m = 0; m < kh; ++m) {
        for (int64_t n = 0; n < kw; ++n) {
          const int64_t r = i * stride + m - top, c = j * stride + n - left;
          if (r < 0 || r >= H || c < 0 || c >= W) continue;
          const auto pixel = x.select(3, c).select(2, r), tap = w.select(3, n).select(2, m);
          y.select(3, j).select(2, i) += at::matmul(pixel, tap.t());
        }
      }
    }
  }
  return y;
}

TEST(Convolution, IsTheDefinitionForAllKernelsAndStrides) {
  for (const int64_t k : {1, 2, 3, 4, 5}) {
    for (const int64_t stride : {1, 2}) {
      for (const auto& size : std::vector<std::vector<int64_t>>{{5, 6}, {8, 8}, {1, 1}}) {
        const auto x = randn({2, 3, size[0], size[1]}, 1), w = randn({4, 3, k, k}, 2);
        EXPECT_LT(distance(ops::conv2d(x, w, {}, stride), convolve(x, w, stride)), 1e-12) << k << " " << stride;
      }
    }
  }
}

TEST(Convolution, Gradients) {
  const auto x = randn({2, 2, 4, 3}, 1), w = randn({3, 2, 3, 3}, 2), b = randn({3}, 3), g = randn({2, 3, 4, 3}, 4);
  EXPECT_LT(gradient_error([&] { return (ops::conv2d(x, w, b) * g).sum(); }, {x, w, b}), 1e-8);
}

TEST(Dense, IsAPointwiseConvolution) {
  const auto x = randn({2, 3, 4, 5}, 1), w = randn({6, 3}, 2), b = randn({6}, 3);
  const auto expected = at::linear(x.permute({0, 2, 3, 1}), w, b).permute({0, 3, 1, 2});
  EXPECT_LT(distance(ops::dense(x, w, b), expected), 1e-12);
}

TEST(Dense, ScalesStatesByComplexNumbers) {
  const auto b = randn({3, 2, 8, 2, 5}, 1);
  const auto gamma = at::complex(randn({3, 2, 4}, 2), randn({3, 2, 4}, 3));
  const auto z = at::complex(b.narrow(2, 0, 4).contiguous(), b.narrow(2, 4, 4).contiguous());
  const auto expected = gamma.unsqueeze(-1).unsqueeze(-1) * z;
  EXPECT_LT(distance(scale_states(gamma, b), at::cat({at::real(expected), at::imag(expected)}, 2)), 1e-13);
}

}  // namespace
}  // namespace convssm::ops::testing
