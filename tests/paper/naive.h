// What statements of the paper are checked against, in float64: convolutions as matrices, by index, the exponential of a
// matrix by its series, the slope of a curve in logarithms.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

namespace convssm::testing {

// Outside of the frame is zero, or the frame is a torus.
enum class Edge { zero, torus };

// The convolution with a real or complex kernel [O,P,k,k], k odd, as a matrix on flattened frames [P,H,W] -> [O,H,W].
inline at::Tensor kernel_matrix(const at::Tensor& kernel, int64_t height, int64_t width, Edge edge) {
  const int64_t O = kernel.size(0), P = kernel.size(1), k = kernel.size(2), r = k / 2;
  const at::Tensor re = at::real(kernel.to(at::kComplexDouble)).contiguous(),
                   im = at::imag(kernel.to(at::kComplexDouble)).contiguous();
  at::Tensor m_re = at::zeros({O, height, width, P, height, width}, at::kDouble), m_im = at::zeros_like(m_re);
  auto out_re = m_re.accessor<double, 6>(), out_im = m_im.accessor<double, 6>();
  const auto in_re = re.accessor<double, 4>(), in_im = im.accessor<double, 4>();
  for (int64_t h = 0; h < height; ++h)
    for (int64_t w = 0; w < width; ++w)
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < k; ++j) {
          int64_t row = h + i - r, column = w + j - r;
          const bool inside = row >= 0 && row < height && column >= 0 && column < width;
          if (edge == Edge::zero && !inside) continue;
          row = (row % height + height) % height;
          column = (column % width + width) % width;
          for (int64_t o = 0; o < O; ++o)
            for (int64_t p = 0; p < P; ++p) {
              out_re[o][h][w][p][row][column] += in_re[o][p][i][j];
              out_im[o][h][w][p][row][column] += in_im[o][p][i][j];
            }
        }
  const std::vector<int64_t> shape{O * height * width, P * height * width};
  return kernel.is_complex() ? at::complex(m_re, m_im).view(shape) : m_re.view(shape);
}

// exp(M) for a small square matrix: the series of M / 2^s, squared s times.
inline at::Tensor series_exp(const at::Tensor& m) {
  const double size = at::abs(m).sum(-1).max().item<double>();
  const int squarings = size > 0.25 ? static_cast<int>(std::ceil(std::log2(size / 0.25))) : 0;
  const at::Tensor small = m / std::pow(2.0, squarings);
  at::Tensor term = at::eye(m.size(0), m.options()), sum = term.clone();
  for (int n = 1; n <= 18; ++n) {
    term = at::mm(term, small) / n;
    sum = sum + term;
  }
  for (int i = 0; i < squarings; ++i) sum = at::mm(sum, sum);
  return sum;
}

// The exponent e of y ~ x^e: least squares in logarithms.
inline double fitted_exponent(const std::vector<double>& x, const std::vector<double>& y) {
  double mx = 0, my = 0, xy = 0, xx = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mx += std::log(x[i]) / x.size();
    my += std::log(y[i]) / x.size();
  }
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (std::log(x[i]) - mx) * (std::log(y[i]) - my);
    xx += (std::log(x[i]) - mx) * (std::log(x[i]) - mx);
  }
  return xy / xx;
}

}  // namespace convssm::testing
