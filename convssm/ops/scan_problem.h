// One scan after its arguments were checked: form and sizes, and the arrays in the order the algorithms want.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/ops/scan.h"
#include "convssm/ops/scan_kernels.h"

namespace convssm::ops {

struct ScanProblem {
  ScanForm form;
  int64_t L, B, S, P;                        // frames, samples, rows per sample (pixels), channels
  bool a_per_step, a_per_sample, a_per_row;  // each includes those before it

  int64_t row() const { return form == ScanForm::real ? P : 2 * P; }           // scalars in a row
  int64_t a_rows() const { return a_per_row ? B * S : a_per_sample ? B : 1; }  // rows of a in a frame
};

// Between the split form and complex numbers, last axis.
at::Tensor join_halves(const at::Tensor& x);
at::Tensor split_numbers(const at::Tensor& x);

struct ScanGradients {
  at::Tensor a, b, x0;
};

// Plain tensor operations: any device and any order of differentiation.
at::Tensor scan_naive(const at::Tensor& a, const at::Tensor& b, const at::Tensor& x0);
at::Tensor scan_tree(const at::Tensor& a, const at::Tensor& b, const at::Tensor& x0);

// The adjoint of the scan as a reversed scan in plain tensor operations; g or g_last may be undefined (zero).
ScanGradients scan_adjoint(const ScanProblem& problem, const at::Tensor& a, const at::Tensor& x, const at::Tensor& x0,
                           const at::Tensor& g, const at::Tensor& g_last, const ScanOptions& options);

// The kernels: b, x0 and g contiguous on the CPU, float32 or float64. x may be b. `chunk` = L means lanes only.
void scan_cpu(const ScanProblem& problem, const at::Tensor& a, const at::Tensor& b, const at::Tensor& x0, at::Tensor& x,
              int64_t chunk);
ScanGradients scan_adjoint_cpu(const ScanProblem& problem, const at::Tensor& a, const at::Tensor& x,
                               const at::Tensor& x0, const at::Tensor& g, const at::Tensor& g_last, int64_t chunk,
                               bool want_grad_a);

}  // namespace convssm::ops
