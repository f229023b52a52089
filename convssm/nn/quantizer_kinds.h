// The quantizers (nn/quantizer.h), a class each.
#pragma once

#include "convssm/nn/quantizer.h"

namespace convssm::nn {

// z -> the nearest row e of a table that is a parameter.
//   loss = mean (e - sg z)^2 + beta mean (z - sg e)^2;   legacy_beta: beta on the first term instead
class GradientQuantizer : public Quantizer {
 public:
  GradientQuantizer(const QuantizerOptions& options, const Stream& stream);
  Quantized forward(const at::Tensor& z, const QuantizerUse& use) override;
  at::Tensor codes_of(const at::Tensor& z) override;
  at::Tensor embed(const at::Tensor& codes) override;

 private:
  at::Tensor table_;  // embedding.weight [size,C]
};

// The table follows what it was chosen for, n_i vectors with the sum s_i in a batch:
//   N_i = d N_i + (1-d) n_i,   m_i = d m_i + (1-d) s_i,   e_i = m_i / N'_i,   N'_i = (N_i + 1e-5) / (N + size 1e-5) N
// with N the sum of all N_i; loss = beta mean (z - sg e)^2. Everything that moves is a buffer.
class EmaQuantizer : public Quantizer {
 public:
  EmaQuantizer(const QuantizerOptions& options, const Stream& stream);
  Quantized forward(const at::Tensor& z, const QuantizerUse& use) override;
  at::Tensor codes_of(const at::Tensor& z) override;
  at::Tensor embed(const at::Tensor& codes) override;

 private:
  void begin(const at::Tensor& rows, const QuantizerUse& use);
  void follow(const at::Tensor& rows, const at::Tensor& codes);
  void begin_again(const at::Tensor& rows, Stream random);

  at::Tensor table_, counts_, sums_;  // e, N, m
  at::Tensor begun_;                  // [1]: whether the first batch has been seen
};

// u = z / |z|, c = row / |row|: the nearest c by angle; out = c.
//   loss = mean (c - sg u)^2 / 2 + beta mean (u - sg c)^2 / 2,  which is what TECO's codebook has
class CosineQuantizer : public Quantizer {
 public:
  CosineQuantizer(const QuantizerOptions& options, const Stream& stream);
  Quantized forward(const at::Tensor& z, const QuantizerUse& use) override;
  at::Tensor codes_of(const at::Tensor& z) override;
  at::Tensor embed(const at::Tensor& codes) override;

 private:
  at::Tensor table_;
};

// Channel i is bounded to L_i values around 0 and rounded; loss 0:
//   out_i = round(tanh(z_i + s_i) h_i - o_i) / floor(L_i / 2),  h = (L-1)(1-1e-3)/2,  o = 1/2 for even L,  s = tan(o / h)
// The code is the number whose digits are the channels, the first one the lowest.
class FsqQuantizer : public Quantizer {
 public:
  explicit FsqQuantizer(const QuantizerOptions& options);
  Quantized forward(const at::Tensor& z, const QuantizerUse& use) override;
  at::Tensor codes_of(const at::Tensor& z) override;
  at::Tensor embed(const at::Tensor& codes) override;

 private:
  at::Tensor bounded(const at::Tensor& z) const;
  at::Tensor per_channel(const std::vector<double>& values, const at::Tensor& like) const;

  std::vector<double> half_, offset_, shift_, width_, basis_;
};

// The first half of z is the mean, the other the log variance, cut to [-30,20]:
//   out = mean + sqrt(var) noise,   divergence = mean over frames of sum (mean^2 + var - 1 - log var) / 2,   loss = beta divergence
class KlBottleneck : public Quantizer {
 public:
  using Quantizer::Quantizer;
  Quantized forward(const at::Tensor& z, const QuantizerUse& use) override;
  at::Tensor codes_of(const at::Tensor& z) override;
  at::Tensor embed(const at::Tensor& codes) override { return codes; }
};

}  // namespace convssm::nn
