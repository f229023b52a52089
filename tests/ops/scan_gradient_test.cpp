// Gradients of the scan: against finite differences in float64, against autograd through the written-out loop, and
// second derivatives.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/ops/isa.h"
#include "convssm/ops/scan.h"
#include "tests/ops/scan_cases.h"
#include "tests/support.h"

namespace convssm::ops::testing {
namespace {

using convssm::testing::distance;
using convssm::testing::finite_difference;
using convssm::testing::max_abs;

const std::vector<ScanOptions> kAlgorithms{{ScanAlgorithm::naive, 0},
                                           {ScanAlgorithm::lanes, 0},
                                           {ScanAlgorithm::tree, 0},
                                           {ScanAlgorithm::chunked, 4},
                                           {ScanAlgorithm::chunked, 5}};

at::Tensor real_view(const at::Tensor& x) { return x.is_complex() ? at::view_as_real(x) : x; }

// A smooth scalar of all states and, separately weighted, of the last one.
at::Tensor loss_of(const ScanResult& r, const at::Tensor& weights) {
  const at::Tensor x = real_view(r.x), last = real_view(r.last);
  return (x * real_view(weights)).sum() + (last * last).sum() + 0.3 * last.sum();
}

TEST(ScanGradient, MatchesFiniteDifferences) {
  torch::manual_seed(1);
  for (const Form form : {Form::real, Form::split, Form::complex}) {
    for (const auto kind : kCoefficients) {
      ScanCase c = random_case(9, 2, {2}, 3, form, kind);
      const at::Tensor weights = at::randn_like(c.b);
      for (const auto& options : kAlgorithms) {
        const std::vector<at::Tensor> inputs{c.a, c.b, c.x0};
        for (auto input : inputs) input.requires_grad_(true);
        const auto loss = [&] { return loss_of(scan(c.a, c.b, c.x0, options), weights); };
        const auto grads = torch::autograd::grad({loss()}, inputs);
        for (size_t i = 0; i < inputs.size(); ++i) {
          const auto numeric = finite_difference([&] { return loss().item<double>(); }, real_view(inputs[i].detach()));
          EXPECT_LT(distance(real_view(grads[i]), numeric) / max_abs(numeric), 1e-9)
              << "input " << i << " form " << static_cast<int>(form) << " kind " << static_cast<int>(kind)
              << " algorithm " << static_cast<int>(options.algorithm);
        }
      }
    }
  }
}

TEST(ScanGradient, MatchesAutogradThroughTheLoop) {
  torch::manual_seed(2);
  for (const Form form : {Form::real, Form::complex}) {
    for (const auto kind : kCoefficients) {
      ScanCase c = random_case(257, 3, {5}, 17, form, kind);
      const at::Tensor g = at::randn_like(c.b);
      const std::vector<at::Tensor> inputs{c.a, c.b, c.x0};
      for (auto input : inputs) input.requires_grad_(true);
      const auto expected = torch::autograd::grad({loop(c.a, c.b, c.x0)}, inputs, {g});
      for (const auto& options : kAlgorithms) {
        const auto found = torch::autograd::grad({scan(c.a, c.b, c.x0, options).x}, inputs, {g});
        for (size_t i = 0; i < inputs.size(); ++i) {
          EXPECT_LT(distance(found[i], expected[i]) / max_abs(expected[i]), 1e-12) << i;
        }
      }
    }
  }
}

void expect_gradients_in_float(const ScanCase& c, const std::string& label) {
  const ScanCase f = to_float(c);
  const at::Tensor g = at::randn_like(f.b);
  const auto grads = [](const ScanCase& s, const at::Tensor& seed, ScanAlgorithm algorithm) {
    const std::vector<at::Tensor> inputs{s.a, s.b, s.x0};
    for (auto input : inputs) input.requires_grad_(true);
    return torch::autograd::grad({scan(s.a, s.b, s.x0, {algorithm, 0}).x}, inputs, {seed});
  };
  const auto exact = grads(to_double(f), g.to(c.b.scalar_type()), ScanAlgorithm::naive);
  const auto found = grads(f, g, ScanAlgorithm::automatic);
  for (size_t i = 0; i < 3; ++i) {
    const at::Tensor same = found[i].to(exact[i].scalar_type());
    EXPECT_LT(distance(same, exact[i]) / max_abs(exact[i]), 3e-6) << label << " " << i;
  }
}

TEST(ScanGradient, InFloatOnEveryInstructionSet) {
  torch::manual_seed(3);
  for (const std::string& isa : isa_names()) {
    force_isa(isa);
    for (const Form form : {Form::real, Form::split, Form::complex}) {
      for (const auto kind : {Coefficients::constant, Coefficients::per_pixel}) {
        expect_gradients_in_float(random_case(130, 2, {7}, 19, form, kind), isa);
      }
    }
  }
  force_isa("");
}

TEST(ScanGradient, TooLargeForTheCacheIsTheSame) {  // written around the cache
  torch::manual_seed(8);
  for (const Form form : {Form::real, Form::split, Form::complex}) {
    expect_gradients_in_float(
        random_case(70, 1, {16, 16}, form == Form::real ? 256 : 128, form, Coefficients::per_pixel), "large");
  }
}

// The gradient of coefficients that pixels share is the sum of those per pixel.
TEST(ScanGradient, OfRepeatedCoefficientsIsTheirSum) {
  torch::manual_seed(9);
  for (const Form form : {Form::real, Form::split, Form::complex}) {
    const ScanCase c = random_case(20, 2, {3, 5}, 19, form, Coefficients::per_sample);
    const at::Tensor a = c.a.clone().requires_grad_(true), g = at::randn_like(c.b);
    const at::Tensor repeated = a.unsqueeze(2).unsqueeze(2).expand({20, 2, 3, 5, 19});
    for (const auto& options : kAlgorithms) {
      const auto shared = torch::autograd::grad({scan(a, c.b, c.x0, options).x}, {a}, {g})[0];
      const auto summed = torch::autograd::grad({scan(repeated, c.b, c.x0, options).x}, {a}, {g}, true)[0];
      EXPECT_LT(distance(summed, shared) / max_abs(shared), 1e-13);
    }
  }
}

// Lengths around the kernel's short sums of the gradient of a; from an empty state, on one and two threads.
TEST(ScanGradient, WithoutAStart) {
  torch::manual_seed(7);
  const int threads = at::get_num_threads();
  for (const int64_t L : {1, 2, 31, 32, 33, 65}) {
    for (const Form form : {Form::real, Form::split, Form::complex}) {
      for (const auto kind : kCoefficients) {
        const ScanCase c = random_case(L, 3, {5}, 17, form, kind);
        const std::vector<at::Tensor> inputs{c.a, c.b};
        for (auto input : inputs) input.requires_grad_(true);
        const at::Tensor g = at::randn_like(as_numbers(c.b.detach(), form));
        const at::Tensor zero = at::zeros_like(as_numbers(c.x0, form));
        const auto expected = torch::autograd::grad({loop(c.a, as_numbers(c.b, form), zero)}, inputs, {g});
        for (const int use : {1, 2}) {
          at::set_num_threads(use);
          for (const auto& options : kAlgorithms) {
            const at::Tensor x = as_numbers(scan(c.a, c.b, {}, options).x, form);
            const auto found = torch::autograd::grad({x}, inputs, {g});
            for (size_t i = 0; i < 2; ++i) {
              const double scale = std::max(1.0, max_abs(expected[i]));
              EXPECT_LT(distance(found[i], expected[i]) / scale, 1e-12) << L << " input " << i;
            }
          }
        }
      }
    }
  }
  at::set_num_threads(threads);
}

TEST(ScanGradient, OfTheLastStateAlone) {
  torch::manual_seed(4);
  for (const auto kind : {Coefficients::constant, Coefficients::per_pixel}) {
    ScanCase c = random_case(30, 2, {3}, 4, Form::complex, kind);
    const std::vector<at::Tensor> inputs{c.a, c.b, c.x0};
    for (auto input : inputs) input.requires_grad_(true);
    const at::Tensor g = at::randn_like(c.x0.detach());
    const auto expected = torch::autograd::grad({loop(c.a, c.b, c.x0)[-1]}, inputs, {g});
    for (const auto& options : kAlgorithms) {
      const auto found = torch::autograd::grad({scan(c.a, c.b, c.x0, options).last}, inputs, {g});
      for (size_t i = 0; i < 3; ++i) EXPECT_LT(distance(found[i], expected[i]), 1e-12) << i;
    }
  }
}

// Parts of the gradients: what is not asked for is not needed by the rest.
TEST(ScanGradient, OfSomeInputsOnly) {
  torch::manual_seed(10);
  for (const auto kind : {Coefficients::constant, Coefficients::per_pixel}) {
    const ScanCase c = random_case(30, 2, {3}, 4, Form::split, kind);
    const std::vector<at::Tensor> inputs{c.a, c.b, c.x0};
    for (auto input : inputs) input.requires_grad_(true);
    const at::Tensor g = at::randn_like(c.b.detach());
    const auto expected = torch::autograd::grad({scan(c.a, c.b, c.x0, kAlgorithms[0]).x}, inputs, {g});
    for (const auto& options : kAlgorithms) {
      for (size_t i = 0; i < 3; ++i) {
        for (auto input : inputs) input.requires_grad_(false);
        auto chosen = inputs[i];
        chosen.requires_grad_(true);
        const auto found = torch::autograd::grad({scan(c.a, c.b, c.x0, options).x}, {chosen}, {g});
        EXPECT_LT(distance(found[0], expected[i]) / max_abs(expected[i]), 1e-12) << i;
      }
    }
  }
}

TEST(ScanGradient, InTheMemoryOfItsInput) {
  torch::manual_seed(5);
  for (const auto kind : {Coefficients::constant, Coefficients::per_pixel}) {
    ScanCase c = random_case(11, 2, {3}, 4, Form::split, kind);
    const std::vector<at::Tensor> inputs{c.a, c.b, c.x0};
    for (auto input : inputs) input.requires_grad_(true);
    const at::Tensor g = at::randn_like(c.b);
    const auto expected = torch::autograd::grad({scan(c.a, c.b * 2, c.x0).x}, inputs, {g});
    const auto found = torch::autograd::grad({scan_(c.a, c.b * 2, c.x0).x}, inputs, {g});
    for (size_t i = 0; i < 3; ++i) EXPECT_LT(distance(found[i], expected[i]), 1e-13) << i;
  }
}

// Coefficients per pixel with channels in front: gradients come back in the same order of axes.
TEST(ScanGradient, FramesWithChannelsInFront) {
  torch::manual_seed(11);
  const ScanCase c = random_case(11, 2, {3, 5}, 4, Form::split, Coefficients::per_pixel);
  const std::vector<at::Tensor> inputs{c.a, c.b, c.x0};
  for (auto input : inputs) input.requires_grad_(true);
  const at::Tensor g = at::randn_like(c.b);
  const auto in_front = [](const at::Tensor& x) { return x.permute({0, 1, 4, 2, 3}); };
  const auto expected = torch::autograd::grad({scan(c.a, c.b, c.x0).x}, inputs, {g});
  const auto frames = scan_frames_(in_front(c.a), in_front(c.b * 1), c.x0.permute({0, 3, 1, 2})).x;
  const auto found = torch::autograd::grad({frames}, inputs, {in_front(g)});
  for (size_t i = 0; i < 3; ++i) EXPECT_LT(distance(found[i], expected[i]), 1e-13) << i;
}

TEST(ScanGradient, AConsumedInputThatAnotherOperationNeedsIsNoticed) {
  at::Tensor w = at::ones({4, 1, 6}, at::kDouble).requires_grad_(true);
  const at::Tensor a = at::ones({3}, at::kComplexDouble);
  at::Tensor b = w * 2;
  const at::Tensor other = (b * b).sum();  // keeps b for its backward
  const at::Tensor x = scan_(a, b).x;
  EXPECT_THROW((x.sum() + other).backward(), c10::Error);
}

TEST(ScanGradient, SecondDerivatives) {
  torch::manual_seed(6);
  for (const auto kind : {Coefficients::per_step, Coefficients::per_pixel}) {
    ScanCase c = random_case(6, 1, {2}, 2, Form::complex, kind);
    const std::vector<at::Tensor> inputs{c.a, c.b, c.x0};
    for (auto input : inputs) input.requires_grad_(true);
    const auto second = [&](const std::function<at::Tensor()>& states) {
      const at::Tensor energy = at::view_as_real(states()).pow(3).sum();
      const auto first = torch::autograd::grad({energy}, inputs, {}, true, true);
      return torch::autograd::grad({at::view_as_real(first[0]).pow(2).sum()}, inputs);
    };
    const auto expected = second([&] { return loop(c.a, c.b, c.x0); });
    for (const auto& options : kAlgorithms) {
      const auto found = second([&] { return scan(c.a, c.b, c.x0, options).x; });
      for (size_t i = 0; i < 3; ++i) EXPECT_LT(distance(found[i], expected[i]) / max_abs(expected[i]), 1e-12) << i;
    }
  }
}

}  // namespace
}  // namespace convssm::ops::testing
