// Checks, the choice of algorithm and autograd. The adjoint of a scan is a scan backwards in time, so the backward runs
// the same kernels; it needs the states x and not b, which is why b's memory can be taken for x (scan_, scan_frames_).
#include "convssm/ops/scan.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstring>

#include "convssm/ops/check.h"
#include "convssm/ops/device.h"
#include "convssm/ops/scan_problem.h"

namespace convssm::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void check_dtypes(const at::Tensor& a, const at::Tensor& b) {
  require("scan", a.defined() && b.defined(), "a and b must be tensors, got an undefined one");
  const auto real = c10::toRealValueType(b.scalar_type());
  require("scan", real == at::kFloat || real == at::kDouble,
          "b must be float32, float64, complex64 or complex128, got {}", dtype_text(b));
  require("scan", a.is_complex() || !b.is_complex(), "a must be complex when b is {}, got {}", dtype_text(b),
          dtype_text(a));
  const auto expected = a.is_complex() ? c10::toComplexType(real) : real;
  require("scan", a.scalar_type() == expected, "a must be {} when b is {}, got {}",
          expected == at::kComplexFloat    ? "complex64"
          : expected == at::kComplexDouble ? "complex128"
                                           : dtype_text(b),
          dtype_text(b), dtype_text(a));
  require("scan", a.device() == b.device(), "a must be on {}, got {}", b.device().str(), a.device().str());
}

// The shape of a: [P], [L,P], [L,B,P] or that of b. One row per sample is the same as one per pixel where that is one.
void check_coefficients(ScanProblem& p, const at::Tensor& a, const at::Tensor& b) {
  std::vector<int64_t> full = b.sizes().vec();
  full.back() = p.P;
  const std::vector<std::vector<int64_t>> shapes{{p.P}, {p.L, p.P}, {p.L, p.B, p.P}, full};
  require("scan", std::find(shapes.begin(), shapes.end(), a.sizes().vec()) != shapes.end(),
          "a must be [P], [L,P], [L,B,P] or, per pixel, {} with L = {}, B = {}, P = {} for b {}, got {}",
          shape_text(full), p.L, p.B, p.P, shape_text(b.sizes()), shape_text(a.sizes()));
  p.a_per_step = a.dim() >= 2;
  p.a_per_sample = a.dim() >= 3;
  p.a_per_row = p.a_per_sample && (a.dim() == b.dim() || p.S == 1);
}

ScanProblem check_problem(const at::Tensor& a, const at::Tensor& b, const at::Tensor& x0) {
  check_dtypes(a, b);
  require("scan", b.dim() >= 3, "b must be [L,B,...,P], got {}", shape_text(b.sizes()));
  require("scan", b.numel() > 0, "b must have no size 0 (L, B, P and all between), got {}", shape_text(b.sizes()));
  ScanProblem p;
  p.form = b.is_complex() ? ScanForm::complex : a.is_complex() ? ScanForm::split : ScanForm::real;
  p.L = b.size(0);
  p.B = b.size(1);
  if (p.form == ScanForm::split) {
    require("scan", b.size(-1) % 2 == 0,
            "b must be [L,B,...,2P] (Re half, Im half) when a is complex and b real, got {}", shape_text(b.sizes()));
  }
  p.P = p.form == ScanForm::split ? b.size(-1) / 2 : b.size(-1);
  p.S = b.numel() / (p.L * p.B * b.size(-1));
  check_coefficients(p, a, b);
  if (x0.defined()) {
    require_shape("scan", "x0", x0, b.sizes().slice(1));
    require_like("scan", "x0", x0, b);
  }
  return p;
}

bool uses_kernels(ScanAlgorithm algorithm, const at::Tensor& b) {
  if (algorithm == ScanAlgorithm::automatic) return takes_kernels(b);
  return algorithm == ScanAlgorithm::lanes || algorithm == ScanAlgorithm::chunked;
}

// Frames per chunk; L = lanes only. Time is cut when even single cache lines of channels do not occupy the threads.
int64_t choose_chunk(const ScanProblem& p, const ScanOptions& options) {
  const int64_t threads = at::get_num_threads();
  const int64_t enough = std::max<int64_t>(1, (p.L + threads - 1) / threads);
  if (options.algorithm == ScanAlgorithm::chunked) {
    return options.chunk > 0 ? std::min(options.chunk, p.L) : enough;
  }
  const int64_t lane_blocks = p.B * p.S * ((p.P + 15) / 16);
  const bool few = options.algorithm == ScanAlgorithm::automatic && lane_blocks < threads && p.L >= 4096;
  return few ? enough : p.L;
}

at::Tensor plain_scan(const ScanProblem& p, ScanAlgorithm algorithm, const at::Tensor& a, const at::Tensor& b,
                      const at::Tensor& x0) {
  const auto run = algorithm == ScanAlgorithm::naive ? scan_naive : scan_tree;
  if (p.form != ScanForm::split) return run(a, b, x0);
  return split_numbers(run(a, join_halves(b), x0.defined() ? join_halves(x0) : x0));
}

at::Tensor contiguous(const at::Tensor& x) { return x.defined() ? x.resolve_conj().contiguous() : x; }

// A new tensor in the memory of b. Autograd is told that b changed, so an operation that kept b complains.
// (Declaring b as modified in place instead would make autograd copy whole gradients, as b is a view of a convolution.)
at::Tensor share_memory(const at::Tensor& b) {
  at::Tensor x = b.variable_data();
  b.unsafeGetTensorImpl()->bump_version();
  return x;
}

// x_L in memory of its own, x being contiguous on the CPU. Copied by this thread: on a busy machine, waiting for the
// others costs more than one frame.
at::Tensor copy_of_last(const at::Tensor& x) {
  at::Tensor last = at::empty(x.sizes().slice(1), x.options());
  const auto* end = static_cast<const char*>(x.data_ptr()) + x.nbytes();
  std::memcpy(last.data_ptr(), end - last.nbytes(), last.nbytes());
  return last;
}

struct ScanFunction : torch::autograd::Function<ScanFunction> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& a, const at::Tensor& b,
                               const OptionalTensor& start, int64_t algorithm, int64_t chunk, bool consume) {
    const at::Tensor x0 = start.value_or(at::Tensor());
    const ScanOptions options{static_cast<ScanAlgorithm>(algorithm), chunk};
    const ScanProblem p = check_problem(a, b, x0);
    at::Tensor x, last;
    if (uses_kernels(options.algorithm, b)) {
      const at::Tensor input = contiguous(b);
      x = consume ? share_memory(input) : at::empty_like(input);
      scan_cpu(p, contiguous(a), input, contiguous(x0), x, choose_chunk(p, options));
      last = copy_of_last(x);
    } else {
      x = plain_scan(p, options.algorithm, a, b, x0).contiguous();
      last = x[-1].clone();
    }
    ctx->set_materialize_grads(false);
    ctx->saved_data["algorithm"] = algorithm;
    ctx->saved_data["chunk"] = chunk;
    ctx->save_for_backward({a, x, x0});
    return {x, last};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &a = saved[0], &x = saved[1], &x0 = saved[2];
    const ScanOptions options{static_cast<ScanAlgorithm>(ctx->saved_data["algorithm"].toInt()),
                              ctx->saved_data["chunk"].toInt()};
    const at::Tensor g = contiguous(grads[0]), g_last = contiguous(grads[1]);
    ScanGradients result;
    if (g.defined() || g_last.defined()) {
      const ScanProblem p = check_problem(a, x, x0);
      // With a graph of the gradient wanted (double backward), the adjoint is written in differentiable operations.
      const bool kernels = uses_kernels(options.algorithm, x) && !at::GradMode::is_enabled();
      result = kernels ? scan_adjoint_cpu(p, contiguous(a), x, contiguous(x0), g, g_last, choose_chunk(p, options),
                                          ctx->needs_input_grad(0))
                       : scan_adjoint(p, a, x, x0, g, g_last, options);
    }
    return {result.a, result.b, result.x0, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

ScanResult run(const at::Tensor& a, const at::Tensor& b, const OptionalTensor& x0, const ScanOptions& options,
               bool consume) {
  require("scan", options.chunk >= 0, "chunk must not be negative, got {}", options.chunk);
  check_problem(a, b, x0.value_or(at::Tensor()));
  require("scan", !uses_kernels(options.algorithm, b) || b.device().is_cpu(),
          "the lanes and chunked algorithms need b on the cpu, got {}; use automatic or tree", b.device().str());
  const auto result = ScanFunction::apply(a, b, x0, static_cast<int64_t>(options.algorithm), options.chunk, consume);
  return {result[0], result[1]};
}

}  // namespace

ScanResult scan(const at::Tensor& a, const at::Tensor& b, const OptionalTensor& x0, const ScanOptions& options) {
  return run(a, b, x0, options, false);
}

ScanResult scan_(const at::Tensor& a, at::Tensor b, const OptionalTensor& x0, const ScanOptions& options) {
  check_dtypes(a, b);
  require("scan_", b.is_contiguous(), "b must be contiguous to be written over; use scan");
  require("scan_", !(b.is_leaf() && b.requires_grad()), "b must not be a leaf that requires grad; use scan");
  return run(a, b, x0, options, true);
}

ScanResult scan_frames_(const at::Tensor& a, at::Tensor b, const OptionalTensor& x0, const ScanOptions& options) {
  require_dims("scan_frames_", "b", b, 5, "[L,B,2P,H,W]");
  const at::Tensor rows = b.permute({0, 1, 3, 4, 2});
  OptionalTensor start;
  if (x0) {
    require_dims("scan_frames_", "x0", *x0, 4, "[B,2P,H,W]");
    start = x0->permute({0, 2, 3, 1});
  }
  at::Tensor coefficients = a;
  if (a.defined() && a.dim() > 3) {
    require_shape("scan_frames_", "a", a, {b.size(0), b.size(1), b.size(2) / 2, b.size(3), b.size(4)});
    coefficients = a.permute({0, 1, 3, 4, 2});
  }
  const bool consume = rows.is_contiguous() && !(rows.is_leaf() && rows.requires_grad());
  const ScanResult result = run(coefficients, rows, start, options, consume);
  return {result.x.permute({0, 1, 4, 2, 3}), result.last.permute({0, 3, 1, 2})};
}

}  // namespace convssm::ops
