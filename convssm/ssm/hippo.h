// State matrices at initialization, as eigenvalues and eigenvectors.
// HiPPO-N: S = -1/2 I + K with K skew-symmetric, p_n = sqrt(n + 1/2), K[n,k] = -p_n p_k (n > k), +p_n p_k (n < k),
// so S = V diag(-1/2 + i w) V^H with w the eigenvalues of the Hermitian matrix -i K. All in float64.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convssm/base/random.h"

namespace convssm::ssm {

// A state matrix A of size N x N in eigen-coordinates. With conjugate halves, for every function f and real C0, B0:
//   2 Re( (C0 v) f(lambda) (v_inverse B0) ) = C0 f(A) B0
struct Spectrum {
  at::Tensor lambda;     // [P] complex128
  at::Tensor v;          // [N,P] complex128
  at::Tensor v_inverse;  // [P,N] complex128
};

// The normal part of HiPPO-LegS, one block: [size,size] float64.
at::Tensor hippo_n_matrix(int64_t size);

// Block-diagonal HiPPO-N of `blocks` equal blocks. With `half`, only the eigenvalues of negative imaginary part are
// kept, most negative first in each block: P = N/2. Without it all of them, ascending: P = N, v f(lambda) v_inverse =
// f(A).
Spectrum hippo_spectrum(int64_t state_size, int64_t blocks, bool half = true);

// The random-state ablation: A with entries N(0, 1/N), one eigenvalue of each conjugate pair (negative imaginary part),
// most negative first, then the real eigenvalues: P = (N + number of real eigenvalues) / 2, which depends on the draw.
// A real eigenvalue is its own conjugate and would count twice in 2 Re(...), so its column of v is halved.
// About half of the eigenvalues have a positive real part: clip them for long rollouts.
Spectrum gaussian_spectrum(int64_t state_size, Stream& stream);

}  // namespace convssm::ssm
