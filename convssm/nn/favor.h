// FAVOR+ attention (Performer): softmax(q k^T / sqrt(d)) replaced by products of positive random features, so that all
// the past is a few sums. With x~ = x d^(-1/4), features w of W [m,d] and r = m^(-1/2):
//   phi_q = r (exp(w x~ - |x~|^2/2 - max_w) + e),   phi_k = r (exp(w x~ - |x~|^2/2 - M) + e)
//   out = phi_q^T S / phi_q^T z,   S = sum phi_k v^T,   z = sum phi_k over the frames up to the query's
// where a denominator of at most e is raised by 2e.
// M is the largest w x~ of all keys so far: a causal stand-in for the maximum over a whole sequence, which cancels but
// for e. So the sums of exponentials are kept scaled by exp(-M), and those of the e terms beside them; splitting a
// sequence anywhere changes nothing. Maxima are constants in gradients.
#pragma once

#include "convssm/base/random.h"
#include "convssm/nn/attention.h"

namespace convssm::nn {

// Memory: `s` [B,heads,m,size], `z` [B,heads,m], both times exp(-max); `v_sum` [B,heads,size]; `max` [B,heads].
class FavorAttention : public Attention {
 public:
  FavorAttention(const HeadShape& shape, int64_t random_features, double epsilon, const Stream& stream);
  Attended forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Memory& before,
                   int64_t seen) override;
  std::vector<std::string> memory_names() const override { return {"s", "z", "v_sum", "max"}; }
  std::vector<std::vector<int64_t>> memory_shapes(int64_t B, int64_t seen) const override;

 private:
  struct Sequence {      // features of all new tokens, heads in the batch
    at::Tensor q, k, v;  // phi_q / r and phi_k / r without e [B*heads,T,m]; v [B*heads,T,size]
    at::Tensor max;      // [B*heads,T]: M at each token
  };
  Sequence features(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Memory& before) const;
  at::Tensor run_chunk(const Sequence& chunk, Memory& sums, int64_t seen) const;

  HeadShape shape_;
  double epsilon_;
  at::Tensor projection_;  // buffer W [m,d], not trained
};

// W [m,d]: blocks of d orthogonal rows, each row as long as a random normal vector of d values. float32.
at::Tensor orthogonal_features(int64_t m, int64_t d, const Stream& stream);

}  // namespace convssm::nn
