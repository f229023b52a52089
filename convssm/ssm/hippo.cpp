// The matrix is normal: after its diagonal is taken off, -i K is Hermitian, so eigh gives orthonormal vectors where a
// general eigensolver would lose digits with the size. Its eigenvalues ascend, so the first half is one of each
// conjugate pair.
#include "convssm/ssm/hippo.h"

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "convssm/ops/check.h"
#include "convssm/ssm/initializers.h"

namespace convssm::ssm {
namespace {

using ops::require;

Spectrum block_spectrum(int64_t size, bool half) {
  const auto s = hippo_n_matrix(size);
  const auto k = s - at::diag(s.diagonal());
  const auto [w, v] = at::linalg_eigh(at::complex(at::zeros_like(k), -k));
  const int64_t kept = half ? size / 2 : size;
  const auto w_kept = w.narrow(0, 0, kept);
  const auto v_kept = v.narrow(1, 0, kept).contiguous();
  return {at::complex(at::full_like(w_kept, -0.5), w_kept), v_kept, v_kept.mH().contiguous()};
}

Spectrum empty_block(int64_t size, bool half) {
  const int64_t kept = half ? size / 2 : size;
  const auto zeros = at::zeros({size, kept}, at::kComplexDouble);
  return {at::full({kept}, -0.5, at::kComplexDouble), zeros, zeros.t()};
}

// Every layer of a stack starts from the same block, and a block of 1024 takes seconds: each is solved once.
Spectrum remembered_block(int64_t size, bool half) {
  static std::mutex mutex;
  static std::map<std::pair<int64_t, bool>, Spectrum> blocks;
  const std::lock_guard lock(mutex);
  const auto found = blocks.find({size, half});
  if (found != blocks.end()) return found->second;
  return blocks[{size, half}] = block_spectrum(size, half);
}

at::Tensor normal_matrix(int64_t size, Stream& stream) {
  auto a = at::empty({size, size}, at::kDouble);
  const double std = 1 / std::sqrt(static_cast<double>(size));
  double* entries = a.data_ptr<double>();
  for (int64_t i = 0; i < a.numel(); ++i) entries[i] = std * stream.normal();
  return a;
}

}  // namespace

at::Tensor hippo_n_matrix(int64_t size) {
  require("hippo", size > 0, "size must be positive, got {}", size);
  const auto p = at::sqrt(at::arange(size, at::kDouble) + 0.5);
  const auto products = at::outer(p, p);
  return at::triu(products, 1) - at::tril(products, -1) - 0.5 * at::eye(size, at::kDouble);
}

Spectrum hippo_spectrum(int64_t state_size, int64_t blocks, bool half) {
  require("hippo", state_size > 0, "state_size must be positive, got {}", state_size);
  require("hippo", blocks > 0, "blocks must be positive, got {}", blocks);
  require("hippo", state_size % blocks == 0, "blocks must divide state_size {}, got {}", state_size, blocks);
  const int64_t size = state_size / blocks;
  require("hippo", !half || state_size % 2 == 0, "state_size must be even with the half spectrum, got {}", state_size);
  require("hippo", !half || size % 2 == 0, "state_size / blocks must be even with the half spectrum, got {} / {} = {}",
          state_size, blocks, size);

  const auto block = WithoutValues::now() ? empty_block(size, half) : remembered_block(size, half);
  const std::vector<at::Tensor> v(blocks, block.v), v_inverse(blocks, block.v_inverse);
  return {block.lambda.repeat({blocks}), at::block_diag(v), at::block_diag(v_inverse)};
}

Spectrum gaussian_spectrum(int64_t state_size, Stream& stream) {
  require("gaussian_spectrum", state_size > 0, "state_size must be positive, got {}", state_size);
  const auto [lambda, v] = at::linalg_eig(normal_matrix(state_size, stream));
  const auto v_inverse = at::linalg_inv(v);

  // LAPACK returns the pairs of a real matrix as exact conjugates and real eigenvalues with an imaginary part of
  // exactly 0.
  const auto order = at::argsort(at::imag(lambda), /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const auto sorted = at::imag(lambda).index_select(0, order);
  const auto kept = order.masked_select(sorted <= 0);
  const auto is_real = at::imag(lambda).index_select(0, kept) == 0;
  const auto weight = 1 - 0.5 * is_real.to(at::kDouble);
  return {lambda.index_select(0, kept), v.index_select(1, kept) * weight, v_inverse.index_select(0, kept)};
}

}  // namespace convssm::ssm
