// What Transformer and Performer share as cores: frames of tokens, a learned first token, positions and the memory of
// the layers. x is [L,B,D], one token per frame, or [L,B,D,h,w], n = h w tokens per frame. Tokens of a frame see each
// other and all earlier frames. Before the first frame of a sequence stands the learned frame `sos`, whose output is
// dropped: output k depends on sos and frames 0..k.
// Positions count tokens, sos included. No time between frames (dt, step_rescale) and no resets: they are errors.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "convssm/base/option_reader.h"
#include "convssm/cores/core.h"
#include "convssm/nn/transformer_stack.h"

namespace convssm::cores {

struct TokenOptions {
  int64_t features = 0;  // D, of a token that enters and leaves
  int64_t layers = 1;
  int64_t heads = 8;
  int64_t mlp = 0;                       // hidden features, 0: 4 D
  std::vector<int64_t> tokens = {1, 1};  // h, w
  uint64_t seed = 0;

  void read_from(OptionReader& read);
  int64_t tokens_per_frame() const { return tokens[0] * tokens[1]; }
};

// State: `layers.<i>.<name>` for what the attention remembers, and `position` (int64 []), the tokens seen so far.
class TokenCoreImpl : public Core {
 public:
  CoreOutput forward(const at::Tensor& x, const State& state = {}, const Timing& timing = {}) override;
  void train(bool on = true) override;

 protected:
  using MakeHeads = std::function<std::shared_ptr<nn::Attention>(const nn::HeadShape& shape, const Stream& stream)>;
  TokenCoreImpl(const char* name, const TokenOptions& options, const MakeHeads& make);

  void check(const at::Tensor& x, const Timing& timing);

  // Frames like x in forward, with sos before them if nothing was seen -> their outputs, sos's dropped.
  at::Tensor run(const at::Tensor& x, std::vector<nn::Memory>& memories, int64_t seen);

 private:
  at::Tensor tokens_of(const at::Tensor& x) const;  // [L,B,D,...] -> [B,L*n,D]
  int64_t read_memories(const State& state, const at::Tensor& x, std::vector<nn::Memory>& memories) const;

  const char* name_;
  TokenOptions options_;
  at::Tensor sos_;  // [D,h,w]
  nn::TransformerStack transformer_{nullptr};
  nn::FiniteCheck finite_;
};

}  // namespace convssm::cores
