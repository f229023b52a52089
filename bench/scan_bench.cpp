// The scan is memory-bound, so its limit is the speed of copying the bytes that it must read and write once:
// forward b -> x, backward (g, x) -> gradient of b; with coefficients per pixel forward (a, b) -> x, backward
// (g, x, a) -> gradients of a and b.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/harness.h"
#include "convssm/ops/scan.h"

namespace convssm::bench {
namespace {

struct Problem {
  const char* name;
  int64_t L, B, size, P;
};

// Copies bytes so that as many pass as when `arrays` of the size of b are read or written once.
void copy_arrays(const at::Tensor& to, const at::Tensor& from, int64_t arrays) {
  copy_bytes(to.data_ptr(), from.data_ptr(), static_cast<int64_t>(from.nbytes()), static_cast<double>(arrays) / 2);
}

// Forward and backward with coefficients a, against copies of that many arrays.
void bench_against_copies(const std::string& forward_name, const std::string& backward_name, const at::Tensor& a,
                          const at::Tensor& b, std::pair<int64_t, int64_t> arrays, std::pair<double, double> goals,
                          int rounds, const Report& report) {
  const auto g = at::randn_like(b), target = at::empty_like(b);
  const auto forward = [&] {
    at::NoGradGuard no_grad;
    ops::scan(a, b);
  };
  report(compare(forward_name, fmt::format("copying the same bytes; goal {}", goals.first), rounds, forward,
                 [&] { copy_arrays(target, b, arrays.first); }));

  const auto with_grad = [](const at::Tensor& x) { return x.detach().requires_grad_(true); };
  const auto a_grad = with_grad(a), b_grad = with_grad(b);
  const auto x = ops::scan(a_grad, b_grad).x;
  const auto backward = [&] { torch::autograd::grad({x}, {a_grad, b_grad}, {g}, true); };
  report(compare(backward_name, fmt::format("copying the same bytes; goal {}", goals.second), rounds, backward,
                 [&] { copy_arrays(target, g, arrays.second); }));
}

void bench_problem(const Problem& p, int rounds, const Report& report) {
  at::manual_seed(1);
  const auto b = at::randn({p.L, p.B, p.size, p.size, 2 * p.P});
  const auto coefficients = [](at::IntArrayRef shape) { return at::polar(at::full(shape, 0.99F), at::rand(shape)); };
  const auto a = coefficients({p.P});
  bench_against_copies(fmt::format("scan.forward.{}", p.name), fmt::format("scan.backward.{}", p.name), a, b, {2, 3},
                       {0.9, 0.8}, rounds, report);
  bench_against_copies(fmt::format("scan.forward.pixel.{}", p.name), fmt::format("scan.backward.pixel.{}", p.name),
                       coefficients({p.L, p.B, p.size, p.size, p.P}), b, {3, 5}, {0.8, 0.8}, rounds, report);

  at::NoGradGuard no_grad;
  report(compare(
      fmt::format("scan.tree.{}", p.name), "the tree scan in tensor operations; goal 8", std::max(3, rounds / 3),
      [&] { ops::scan(a, b); },
      [&] {
        ops::scan(a, b, {}, {ops::ScanAlgorithm::tree, 0});
      }));
}

}  // namespace

void bench_scan(const Settings& settings, const Report& report) {
  const int rounds = settings.rounds;
  bench_problem({"L600.B1.16x16.P128", 600, 1, 16, 128}, rounds, report);
  bench_problem({"L300.B8.8x8.P64", 300, 8, 8, 64}, rounds, report);
}

}  // namespace convssm::bench
