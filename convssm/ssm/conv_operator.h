// The associative operator of Proposition 1 on (kernel, frame) pairs, and inclusive scans with it:
//   q_i (*) q_j = ( q_j.a o q_i.a,  q_j.a * q_i.b + q_j.b )
// where * applies a kernel to a frame and o composes two kernels: (d o e) * f = d * (e * f). Composed kernels grow: n
// kernels of width k make one of width n(k-1)+1. That law is exact on a periodic frame. With zero padding the frame is
// cut to H x W after every step, so what leaves it is lost, and a composed kernel would bring it back: there the law
// holds for pointwise kernels (k = 1) only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace convssm::ssm {

enum class Boundary {
  zero,      // outside of the frame is 0
  periodic,  // the frame is a torus
};

struct ScanElement {
  at::Tensor a;  // kernel [P,P,k,k], k odd
  at::Tensor b;  // frame [B,P,H,W]
};

// Multiply-adds done so far.
struct Macs {
  int64_t compose = 0;
  int64_t apply = 0;
  int64_t total() const { return compose + apply; }
};

// a * x: kernel [O,P,k,k] on frames [B,P,H,W] -> [B,O,H,W]. A periodic frame may be smaller than the kernel.
at::Tensor apply_kernel(const at::Tensor& a, const at::Tensor& x, Boundary boundary);

// a_j o a_i: [O,M,k_j,k_j] o [M,P,k_i,k_i] -> [O,P,k,k] with k = k_i + k_j - 1, odd widths.
at::Tensor compose_kernels(const at::Tensor& a_j, const at::Tensor& a_i);

// The multiply-adds of these two: O P k^2 B H W, and O M P k_i^2 k_j^2.
int64_t apply_macs(const at::Tensor& a, const at::Tensor& x);
int64_t compose_macs(const at::Tensor& a_j, const at::Tensor& a_i);

// Throws unless kernels like `a` obey the companion law on this boundary, and says what to use instead.
void require_associative(const at::Tensor& a, Boundary boundary);

// q_i (*) q_j: first i, then j.
ScanElement combine(const ScanElement& q_i, const ScanElement& q_j, Boundary boundary, Macs* macs = nullptr);

// The states x_k = a_k * x_{k-1} + b_k with x_0 = 0, for k = 1..L: L - 1 applications of a kernel, on any boundary.
std::vector<at::Tensor> scan_sequential(const std::vector<ScanElement>& elements, Boundary boundary,
                                        Macs* macs = nullptr);

// The same states by a work-efficient tree of depth 2 log2 L: fewer than L compositions and 2 L applications.
std::vector<at::Tensor> scan_tree(const std::vector<ScanElement>& elements, Boundary boundary, Macs* macs = nullptr);

}  // namespace convssm::ssm
