// The Transformer of the paper as a core on tokens (token_core.h), with a cache of keys and values for its state, so
// that a step computes only the new tokens. State: `layers.<i>.k`, `layers.<i>.v` [B,heads,S,D/heads], `position`.
//
// `window` W > 0: in each layer a token attends to the last W frames, its own and perhaps sos included; the cache holds
// W-1 frames. Positions go on counting, and through the layers a token still hears of older frames.
//
// `recompute`: without a cache, as the paper's reference does, to measure what it costs. State: `tokens`, the past
// frames [S,B,D,...]. Every call encodes them again. Without a window the numbers are those of the cache. With a window
// the output for a frame is computed from the sequence (sos, that frame and the up to W-2 frames before it) alone, at
// positions from 0: the reference's sliding window of W frames in which sos is always the first. Needs W >= 2.
#pragma once

#include <torch/nn/pimpl.h>

#include "convssm/cores/token_core.h"

namespace convssm::cores {

struct TransformerOptions : TokenOptions {
  int64_t window = 0;  // frames, 0: unlimited
  bool recompute = false;

  static TransformerOptions from_json(const nlohmann::json& json);
};

class TransformerImpl : public TokenCoreImpl {
 public:
  explicit TransformerImpl(const TransformerOptions& options);
  CoreOutput forward(const at::Tensor& x, const State& state = {}, const Timing& timing = {}) override;
  bool constant_state() const override { return options_.window > 0; }
  double pair_bytes() const override;
  const TransformerOptions& options() const { return options_; }

 private:
  at::Tensor past_frames(const State& state, const at::Tensor& x) const;
  at::Tensor run_windows(const at::Tensor& frames, int64_t past);

  TransformerOptions options_;
};
TORCH_MODULE(Transformer);

}  // namespace convssm::cores
