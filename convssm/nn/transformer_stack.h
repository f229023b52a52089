// The Transformer of the paper on rows of tokens: a dense layer in, positions added, pre-norm blocks
//   x = x + MHA(LN(x)),   x = x + MLP(LN(x)),   MLP = dense quick_gelu dense
// and LN(gelu(dense(x))) out. How tokens mix is an Attention of the caller's choice.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <memory>

#include "convssm/nn/attention.h"
#include "convssm/nn/modules.h"

namespace convssm::nn {

class FramePlan;
struct Buffer;

struct TransformerStackOptions {
  int64_t in = 0;        // features of the tokens that enter
  int64_t features = 0;  // D, inside and out
  int64_t layers = 1, heads = 1;
  int64_t mlp = 0;  // hidden features of the MLP
};

// q, k, v [B,heads,T,D/heads] of the tokens of a call -> what they take from each other, like q.
using Mix = std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;

using MakeAttention = std::function<std::shared_ptr<Attention>(const Stream& stream)>;

// Parameters: norm1, qkv [3D,D], out, norm2, mlp1, mlp2; qkv and out untruncated normal of variance 1/D.
class TransformerBlockImpl : public torch::nn::Module {
 public:
  TransformerBlockImpl(const TransformerStackOptions& options, const MakeAttention& attention, const Stream& stream);

  // x [B*T,D] -> [B*T,D], mixed by the caller; the block may be one without an Attention.
  at::Tensor forward(const at::Tensor& x, int64_t B, const Mix& mix);

  // The same by its Attention; memory is replaced by that after these tokens.
  at::Tensor forward(const at::Tensor& x, int64_t B, Memory& memory, int64_t seen);
  const Attention& attention() const { return *attention_; }

  // Attention over all pixels of x, by softmax. With `places` (FramePlan::pick) only the outputs there.
  Buffer plan(FramePlan& plan, Buffer x, const at::Tensor& places);

 private:
  at::Tensor attend(const at::Tensor& x, int64_t B, const Mix& mix);

  int64_t heads_;
  Norm norm1_, norm2_;
  Dense qkv_, out_, mlp1_, mlp2_;
  std::shared_ptr<Attention> attention_;
};
TORCH_MODULE(TransformerBlock);

class TransformerStackImpl : public torch::nn::Module {
 public:
  TransformerStackImpl(const TransformerStackOptions& options, const MakeAttention& attention, const Stream& stream);

  // tokens [B,T,in], positions [T,D] to be added, one memory per layer, which this replaces -> [B,T,D].
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& positions, std::vector<Memory>& memories,
                     int64_t seen = 0);
  const Attention& attention() const { return layers_[0]->attention(); }

  // For tokens of one frame that all see each other: x is what the dense layer in and the positions made of them; only the
  // outputs at `places` (FramePlan::pick) come out.
  Buffer plan(FramePlan& plan, Buffer x, const at::Tensor& places);
  const Dense& input() const { return input_; }

 private:
  TransformerStackOptions options_;
  Dense input_, output_;
  Norm norm_;
  std::vector<TransformerBlock> layers_;
};
TORCH_MODULE(TransformerStack);

// Fixed positions first, ..., first + count - 1: row p is [sin(p f) | cos(p f)], f_i = 10000^(-2i/D), i < D/2.
at::Tensor sinusoids(int64_t first, int64_t count, int64_t features, const at::TensorOptions& options);

}  // namespace convssm::nn
