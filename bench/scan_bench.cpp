// The scan is memory-bound, so its limit is the speed of copying the bytes that it must read and write once:
// forward b -> x, backward (g, x) -> mu.
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

void bench_problem(const Problem& p, int rounds, const Report& report) {
  at::manual_seed(1);
  const auto b = at::randn({p.L, p.B, p.size, p.size, 2 * p.P});
  const auto a = at::polar(at::full({p.P}, 0.99F), at::rand({p.P}));
  const auto g = at::randn_like(b), target = at::empty_like(b);
  const int64_t bytes = static_cast<int64_t>(b.nbytes());
  const auto copy = [&](int64_t arrays) {  // arrays read or written
    copy_bytes(target.data_ptr(), b.data_ptr(), bytes);
    if (arrays == 3) copy_bytes(target.data_ptr(), g.data_ptr(), bytes / 2);
  };

  const auto forward = [&] {
    at::NoGradGuard no_grad;
    ops::scan(a, b);
  };
  report(compare(fmt::format("scan.forward.{}", p.name), "copying the same bytes; goal 0.9", rounds, forward,
                 [&] { copy(2); }));

  const auto with_grad = [](const at::Tensor& x) { return x.detach().requires_grad_(true); };
  const auto a_grad = with_grad(a), b_grad = with_grad(b);
  const auto x = ops::scan(a_grad, b_grad).x;
  const auto backward = [&] { torch::autograd::grad({x}, {a_grad, b_grad}, {g}, true); };
  report(compare(fmt::format("scan.backward.{}", p.name), "copying the same bytes; goal 0.8", rounds, backward,
                 [&] { copy(3); }));

  const auto tree = [&] {
    at::NoGradGuard no_grad;
    ops::scan(a, b, {}, {ops::ScanAlgorithm::tree, 0});
  };
  report(compare(fmt::format("scan.tree.{}", p.name), "the tree scan in tensor operations; goal 8",
                 std::max(3, rounds / 3), forward, tree));
}

}  // namespace

void bench_scan(const Settings& settings, const Report& report) {
  const int rounds = settings.rounds;
  bench_problem({"L600.B1.16x16.P128", 600, 1, 16, 128}, rounds, report);
  bench_problem({"L300.B8.8x8.P64", 300, 8, 8, 64}, rounds, report);
}

}  // namespace convssm::bench
