// The state spaces along the axes of frames as explicit kernels, written down with scalars from the definitions: what the
// block s4nd is compared with. Discretized by zero-order hold, both directions, the second from the neighbour on.
#pragma once

#include <complex>

#include "tests/nn/plain.h"

namespace convssm::nn::testing {

// K[offset + length - 1] for offsets -(length-1) .. length-1 of channel c; y[i] = sum_j K(i - j) u[j].
inline std::vector<double> axis_kernel(const Parameters& p, const std::string& axis, int64_t c, int64_t length) {
  using Complex = std::complex<double>;
  const auto value = [&](const char* name) { return p(axis + "." + name).detach().to(at::kDouble).contiguous(); };
  const at::Tensor re = value("Lambda_re"), im = value("Lambda_im"), readout = value("C"), step = value("log_step");
  const double delta = std::exp(step[c].item<double>());
  std::vector<double> taps(static_cast<size_t>(2 * length - 1));
  for (int64_t n = 0; n < re.size(1); ++n) {
    const Complex lambda(std::min(re[c][n].item<double>(), -1e-4), im[c][n].item<double>());
    const Complex a = std::exp(lambda * delta), gamma = (a - 1.0) / lambda;
    for (int64_t direction = 0; direction < 2; ++direction) {
      const at::Tensor weight = readout[direction][c][n];
      const Complex scale = 2.0 * Complex(weight[0].item<double>(), weight[1].item<double>()) * gamma;
      for (int64_t m = 0; m < length - direction; ++m) {
        const int64_t offset = direction == 0 ? m : -m - 1;
        taps[offset + length - 1] += (scale * std::pow(a, static_cast<double>(m))).real();
      }
    }
  }
  return taps;
}

// K * y with K[h,w] = K_h[h] K_w[w], by loops over all pairs of pixels; y [N,C,H,W] float64.
inline at::Tensor separable_convolution(const Parameters& p, const at::Tensor& y) {
  const int64_t H = y.size(2), W = y.size(3);
  at::Tensor out = at::zeros_like(y);
  for (int64_t c = 0; c < y.size(1); ++c) {
    const auto rows = axis_kernel(p, "rows", c, W), columns = axis_kernel(p, "columns", c, H);
    for (int64_t to = 0; to < H * W; ++to) {
      for (int64_t from = 0; from < H * W; ++from) {
        const double k = columns[to / W - from / W + H - 1] * rows[to % W - from % W + W - 1];
        out.select(1, c).select(1, to / W).select(1, to % W) +=
            k * y.select(1, c).select(1, from / W).select(1, from % W);
      }
    }
  }
  return out;
}

}  // namespace convssm::nn::testing
