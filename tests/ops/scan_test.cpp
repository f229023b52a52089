// The scan against the recurrence written out in float64: every algorithm, form, shape of coefficients and instruction
// set. The bound is relative to the condition of the lane: sum over j of |a|^(k-j) |b_j|.
#include "convssm/ops/scan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/ops/isa.h"
#include "tests/ops/scan_cases.h"

namespace convssm::ops::testing {
namespace {

constexpr double kFloatBound = 2e-6, kDoubleBound = 1e-12;

const std::vector<int64_t> kLengths{1, 2, 3, 5, 7, 31, 32, 33, 255, 256, 257, 600, 1200, 4097};
const std::vector<Form> kForms{Form::real, Form::split, Form::complex};

std::vector<ScanOptions> all_algorithms() {
  return {{ScanAlgorithm::automatic, 0}, {ScanAlgorithm::naive, 0},   {ScanAlgorithm::lanes, 0},
          {ScanAlgorithm::tree, 0},      {ScanAlgorithm::chunked, 0}, {ScanAlgorithm::chunked, 13},
          {ScanAlgorithm::chunked, 1000}};
}

// The largest error of x relative to the condition of its lane.
double relative_error(const at::Tensor& x, const at::Tensor& truth, const at::Tensor& condition) {
  return ((x - truth).abs() / condition).max().item<double>();
}

void expect_equal(const ScanCase& c, Form form, const ScanOptions& options, const std::string& label) {
  const at::Tensor exact = loop(c.a, as_numbers(c.b, form), as_numbers(c.x0, form));
  const ScanResult in_double = scan(c.a, c.b, c.x0, options);
  EXPECT_LT(relative_error(as_numbers(in_double.x, form), exact, condition(c, form)), kDoubleBound) << label;
  EXPECT_TRUE(at::equal(in_double.last, in_double.x[-1])) << label;

  const ScanCase rounded = to_float(c), same = to_double(rounded);
  const at::Tensor truth = loop(same.a, as_numbers(same.b, form), as_numbers(same.x0, form));
  const ScanResult in_float = scan(rounded.a, rounded.b, rounded.x0, options);
  const at::Tensor x = as_numbers(in_float.x, form);
  EXPECT_LT(relative_error(x.to(truth.scalar_type()), truth, condition(same, form)), kFloatBound) << label;
}

std::string label(int64_t L, Form form, Coefficients kind, const ScanOptions& options) {
  return fmt::format("L {} form {} coefficients {} algorithm {} chunk {}", L, static_cast<int>(form),
                     static_cast<int>(kind), static_cast<int>(options.algorithm), options.chunk);
}

TEST(Scan, AllAlgorithmsAgreeForAllLengths) {
  torch::manual_seed(1);
  for (const int64_t L : kLengths) {
    for (const Form form : kForms) {
      for (const Coefficients kind : kCoefficients) {
        const ScanCase c = random_case(L, 2, {3}, 5, form, kind);
        for (const auto& options : all_algorithms()) expect_equal(c, form, options, label(L, form, kind, options));
      }
    }
  }
}

TEST(Scan, OddAndVectorSizesOfEveryAxis) {
  torch::manual_seed(2);
  const std::vector<std::vector<int64_t>> frames{{}, {1}, {5, 7}, {16, 3}};
  for (const int64_t B : {1, 3}) {
    for (const auto& frame : frames) {
      for (const int64_t P : {1, 3, 8, 16, 17, 64}) {
        for (const Form form : kForms) {
          for (const auto kind : {Coefficients::per_sample, Coefficients::per_pixel}) {
            const ScanCase c = random_case(19, B, frame, P, form, kind);
            for (const auto& options : all_algorithms()) {
              expect_equal(c, form, options, fmt::format("B {} frame {} P {}", B, frame.size(), P));
            }
          }
        }
      }
    }
  }
}

TEST(Scan, EveryInstructionSetOfThisMachine) {
  torch::manual_seed(3);
  for (const std::string& isa : isa_names()) {
    force_isa(isa);
    ASSERT_EQ(isa_name(), isa);
    for (const Form form : kForms) {
      for (const auto kind : {Coefficients::per_step, Coefficients::per_pixel}) {
        const ScanCase c = random_case(33, 2, {3}, 37, form, kind);
        for (const auto& options : all_algorithms()) expect_equal(c, form, options, isa);
      }
    }
  }
  force_isa("");
}

TEST(Scan, ResultsTooLargeForTheCacheAreTheSame) {  // written around the cache
  torch::manual_seed(4);
  for (const auto kind : {Coefficients::constant, Coefficients::per_pixel}) {
    const ScanCase c = random_case(70, 1, {16, 16}, 128, Form::split, kind);
    ASSERT_GT(c.b.numel() * 4, 16 << 20);
    expect_equal(c, Form::split, {}, "large");
  }
  const ScanCase pairs = random_case(70, 1, {16, 16}, 128, Form::complex, Coefficients::constant);
  expect_equal(pairs, Form::complex, {}, "large");
}

TEST(Scan, SplittingAnywhereAndCarryingTheStateChangesNothing) {
  torch::manual_seed(5);
  for (const Form form : kForms) {
    for (const auto kind : {Coefficients::per_step, Coefficients::per_pixel}) {
      const ScanCase c = to_float(random_case(23, 2, {3, 5}, 9, form, kind));
      const at::Tensor whole = scan(c.a, c.b, c.x0).x;
      for (int64_t cut = 1; cut < 23; ++cut) {
        const ScanResult first = scan(c.a.slice(0, 0, cut), c.b.slice(0, 0, cut), c.x0);
        const ScanResult second = scan(c.a.slice(0, cut), c.b.slice(0, cut), first.last);
        EXPECT_TRUE(at::equal(whole, at::cat({first.x, second.x}))) << cut;
      }
    }
  }
}

TEST(Scan, StepByStepEqualsAllAtOnce) {
  torch::manual_seed(6);
  for (const int64_t L : kLengths) {
    for (const Form form : kForms) {
      const ScanCase c = to_float(random_case(L, 2, {3}, 16, form, Coefficients::constant));
      const at::Tensor whole = scan(c.a, c.b, c.x0, {ScanAlgorithm::lanes, 0}).x;
      at::Tensor x = c.x0;
      bool same = true;
      for (int64_t k = 0; k < L; ++k) {
        x = scan(c.a, c.b.slice(0, k, k + 1), x).last;
        same = same && at::equal(x, whole[k]);
      }
      EXPECT_TRUE(same) << L;
    }
  }
}

TEST(Scan, FewLanesAndManyFramesAreCutInTime) {
  torch::manual_seed(12);
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  for (const auto kind : {Coefficients::constant, Coefficients::per_pixel}) {
    ScanCase c = random_case(4097, 1, {}, 5, Form::split, kind);
    c.a /= c.a.abs();  // nothing is forgotten
    expect_equal(c, Form::split, {}, "automatic");
    const ScanCase f = to_float(c);
    const at::Tensor chunked = scan(f.a, f.b, f.x0, {ScanAlgorithm::chunked, 0}).x;
    EXPECT_TRUE(at::equal(scan(f.a, f.b, f.x0).x, chunked));
    EXPECT_FALSE(at::equal(scan(f.a, f.b, f.x0, {ScanAlgorithm::lanes, 0}).x, chunked));  // rounded in another order
  }
  at::set_num_threads(before);
}

TEST(Scan, WithoutAStartItIsZero) {
  torch::manual_seed(7);
  for (const auto& options : all_algorithms()) {
    const ScanCase c = random_case(40, 2, {3}, 4, Form::complex, Coefficients::constant);
    const at::Tensor from_zero = scan(c.a, c.b, at::zeros_like(c.x0), options).x;
    EXPECT_LT((scan(c.a, c.b, {}, options).x - from_zero).abs().max().item<double>(), 1e-13);
  }
}

TEST(Scan, AZeroCoefficientForgetsTheState) {
  torch::manual_seed(8);
  ScanCase c = to_float(random_case(20, 2, {3}, 4, Form::split, Coefficients::per_sample));
  c.a.select(0, 12).select(0, 1).zero_();
  for (const auto& options : all_algorithms()) {
    const at::Tensor x = scan(c.a, c.b, c.x0, options).x;
    EXPECT_TRUE(at::equal(x[12][1], c.b[12][1]));
    EXPECT_FALSE(at::equal(x[12][0], c.b[12][0]));
  }
}

TEST(Scan, AZeroCoefficientOfOnePixelForgetsThatPixel) {
  torch::manual_seed(13);
  ScanCase c = to_float(random_case(20, 2, {3}, 4, Form::split, Coefficients::per_pixel));
  c.a[12][1][2].zero_();
  for (const auto& options : all_algorithms()) {
    const at::Tensor x = scan(c.a, c.b, c.x0, options).x;
    EXPECT_TRUE(at::equal(x[12][1][2], c.b[12][1][2]));
    EXPECT_FALSE(at::equal(x[12][1][1], c.b[12][1][1]));
    EXPECT_FALSE(at::equal(x[12][0][2], c.b[12][0][2]));
  }
}

// Also a view that is not contiguous, and one whose conjugation was put off.
TEST(Scan, CoefficientsRepeatedForEveryPixelAreThoseOfAll) {
  torch::manual_seed(14);
  for (const Form form : kForms) {
    const ScanCase c = to_float(random_case(20, 2, {3, 5}, 19, form, Coefficients::per_sample));
    const at::Tensor repeated = c.a.unsqueeze(2).unsqueeze(2).expand({20, 2, 3, 5, 19});
    for (const auto& options : all_algorithms()) {
      const auto run = [&](const at::Tensor& a) { return as_numbers(scan(a, c.b, c.x0, options).x, form); };
      const at::Tensor shared = run(c.a), scale = condition(c, form);
      EXPECT_LT(relative_error(run(repeated), shared, scale), kFloatBound);
      EXPECT_LT(relative_error(run(repeated.conj().clone().conj()), shared, scale), kFloatBound);
    }
  }
}

TEST(Scan, InTheMemoryOfItsInput) {
  torch::manual_seed(9);
  for (const auto kind : {Coefficients::constant, Coefficients::per_pixel}) {
    const ScanCase c = to_float(random_case(50, 2, {3, 3}, 16, Form::split, kind));
    const at::Tensor expected = scan(c.a, c.b, c.x0).x;
    at::Tensor b = c.b.clone();
    const at::Tensor x = scan_(c.a, b, c.x0).x;
    EXPECT_TRUE(at::equal(x, expected));
    EXPECT_EQ(x.data_ptr(), b.data_ptr());
  }
}

TEST(Scan, FramesWithChannelsInFront) {
  torch::manual_seed(10);
  for (const auto kind : {Coefficients::constant, Coefficients::per_pixel}) {
    const ScanCase c = to_float(random_case(12, 2, {3, 5}, 8, Form::split, kind));
    const ScanResult rows = scan(c.a, c.b, c.x0);
    for (const bool channels_last : {true, false}) {
      const auto in_front = [&](const at::Tensor& x) {
        const at::Tensor frames = x.permute({0, 1, 4, 2, 3});
        return channels_last ? frames.clone() : frames.clone(at::MemoryFormat::Contiguous);
      };
      const at::Tensor a = kind == Coefficients::per_pixel ? in_front(c.a) : c.a;
      const ScanResult frames = scan_frames_(a, in_front(c.b), c.x0.permute({0, 3, 1, 2}));
      EXPECT_TRUE(at::equal(frames.x, rows.x.permute({0, 1, 4, 2, 3})));
      EXPECT_TRUE(at::equal(frames.last, rows.last.permute({0, 3, 1, 2})));
    }
  }
}

TEST(Scan, ThreadsDoNotChangeTheResult) {
  torch::manual_seed(11);
  const int before = at::get_num_threads();
  for (const auto kind : {Coefficients::constant, Coefficients::per_pixel}) {
    const ScanCase c = to_float(random_case(64, 3, {5}, 32, Form::split, kind));
    at::set_num_threads(1);
    const at::Tensor one = scan(c.a, c.b, c.x0).x;
    at::set_num_threads(2);
    const at::Tensor two = scan(c.a, c.b, c.x0).x;
    EXPECT_TRUE(at::equal(one, two));
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace convssm::ops::testing
