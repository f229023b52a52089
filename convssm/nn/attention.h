// Attention over a sequence of frames of n tokens each: tokens of a frame see each other and the frames before. The
// tokens come in any number of calls; what a call must know of those before it is a memory, a list of tensors.
// With one frame that holds all tokens this is attention without a mask.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

namespace convssm::nn {

struct HeadShape {
  int64_t heads, size;       // D = heads * size
  int64_t tokens_per_frame;  // n
};

using Memory = std::vector<at::Tensor>;  // empty before the first token

struct Attended {
  at::Tensor out;  // like q
  Memory memory;
};

class Attention : public torch::nn::Module {
 public:
  // q, k, v [B,heads,T,size] of T new tokens, whole frames; `seen` tokens came before.
  virtual Attended forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Memory& before,
                           int64_t seen) = 0;

  virtual std::vector<std::string> memory_names() const = 0;
  virtual std::vector<std::vector<int64_t>> memory_shapes(int64_t B, int64_t seen) const = 0;
};

// softmax(q k^T / sqrt(size)) v: q [B,heads,T,size] are the last T of the tokens that keys and values [B,heads,S,size] are of,
// in whole frames of n. Over the last `window` frames, the own one included (0: all).
at::Tensor attend_frames(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values, int64_t n,
                         int64_t window);

// attend_frames over the last `window` frames. Memory: `k` and `v`,
// [B,heads,S,size] of the tokens that later ones may see. Queries are taken in blocks, so that scores of all heads
// exist only for one block at a time; with gradients their softmax is kept.
class SoftmaxAttention : public Attention {
 public:
  SoftmaxAttention(const HeadShape& shape, int64_t window);
  Attended forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Memory& before,
                   int64_t seen) override;
  std::vector<std::string> memory_names() const override { return {"k", "v"}; }
  std::vector<std::vector<int64_t>> memory_shapes(int64_t B, int64_t seen) const override;

 private:
  int64_t kept(int64_t seen) const;  // tokens of the memory

  HeadShape shape_;
  int64_t window_;
};

}  // namespace convssm::nn
