// MaskGit (Chang et al. 2022, arXiv 2202.04200): a Transformer without a mask over the tokens of one frame, some of which are
// hidden, that gives a distribution for each of them. What is known of the frame, `cond`, stands beside every token.
//   x = Transformer([table[token], cond] + positions),  logits = LN(gelu(dense(x))) . table[0..K-1] + bias
// The table has K+1 rows; the last is the hidden token. Positions are learned for rows and columns, each half of the features.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "convssm/nn/transformer_stack.h"

namespace convssm::nn {

struct MaskGitOptions {
  int64_t codes = 1024;  // K
  int64_t cond = 0;      // channels of what is known
  int64_t height = 8, width = 8;
  int64_t vocabulary = 256;  // features of the table
  int64_t features = 512, layers = 8, heads = 8, mlp = 2048;
};

class MaskGitImpl : public torch::nn::Module {
 public:
  MaskGitImpl(const MaskGitOptions& options, const Stream& stream);

  // tokens [N,h,w] int64 in 0 .. K, K is the hidden one; cond [N,cond,h,w] -> logits [N,K,h,w].
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& cond);

  // Describes one pass to a plan. Doors: `tokens` int64 [B,h*w] and `places` int64 [B,count] go in, `known` [B,D,h,w] is
  // what condition() made, `logits` [B,K,1,count] come out. What is the same for all passes of a frame is not in it.
  void plan(FramePlan& plan, int64_t count);
  at::Tensor condition(const at::Tensor& cond) const;  // [B,cond,h,w] -> [B,D,h,w]

  int64_t hidden_token() const { return options_.codes; }
  const MaskGitOptions& options() const { return options_; }

 private:
  at::Tensor positions() const;  // [h*w,D]

  MaskGitOptions options_;
  at::Tensor table_, rows_, columns_, bias_;
  TransformerStack transformer_{nullptr};
  Dense head_{nullptr};
  Norm norm_{nullptr};
};
TORCH_MODULE(MaskGit);

}  // namespace convssm::nn
