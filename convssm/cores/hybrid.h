// A stack of ConvS5 layers with attention between them: every `attention_every`-th layer is a pre-norm Transformer block in
// which the tokens of a frame look at those of the last `window` frames, the own one included. The state spaces carry what
// is long ago, attention fetches details of what is recent; state and cost of a step are fixed.
//
// Tokens are pixels, or patches of p x p pixels behind dense layers: out = u + expand(block(compress(u))). With the norm after
// the ConvS5 layers there is one after these too, since what follows expects frames of that size. Positions of tokens
// are rotary, in time and in space (nn/rotary.h): relative, so a rollout stays as it was in training however long it gets,
// and keys lie in the state as they are, without a frame number.
//
// dt and step_rescale go to the ConvS5 layers; attention counts frames, whatever their intervals. No resets.
// State: `layers.<i>.x` of ConvS5 layers (convs5.h), `layers.<i>.k` and `layers.<i>.v` of the others, [B,heads,S,D/heads]
// for the tokens of the up to window-1 frames before.
#pragma once

#include <torch/nn/pimpl.h>

#include <vector>

#include "convssm/cores/convs5.h"
#include "convssm/nn/transformer_stack.h"

namespace convssm::cores {

struct StackLayer;

struct HybridOptions {
  ConvS5Options convs5 = {.layers = 2};  // of all layers: `layers` counts those of attention too
  int64_t attention_every = 2;           // 1: all layers are attention
  int64_t window = 8;                    // frames
  int64_t heads = 4;
  int64_t mlp = 0;  // hidden features, 0: 4 * features
  int64_t patch = 1;

  // From {"features": 64, "state_size": 64, "layers": 4, "window": 8, ...}, all on one level.
  static HybridOptions from_json(const nlohmann::json& json);
  bool is_attention(int64_t layer) const { return (layer + 1) % attention_every == 0; }
};

// One layer of attention. Parameters: those of `block`, `norm` if it has one; with patches also `compress` and `expand`,
// dense, of tokens whose features are (row, column, channel) of the patch.
class WindowAttentionImpl : public torch::nn::Module {
 public:
  WindowAttentionImpl(const HybridOptions& options, const Stream& stream);

  // u [L*B,C,H,W], keys and values of the frames before or undefined -> the output like u, keys and values after it.
  std::vector<at::Tensor> forward(const at::Tensor& u, int64_t L, const at::Tensor& k, const at::Tensor& v);

 private:
  at::Tensor tokens_of(const at::Tensor& u, int64_t L) const;                            // [B*L*h*w, p*p*C]
  at::Tensor frames_of(const at::Tensor& tokens, const at::Tensor& u, int64_t L) const;  // like u

  HybridOptions options_;
  nn::Dense compress_{nullptr}, expand_{nullptr};
  nn::TransformerBlock block_{nullptr};
  nn::Norm norm_{nullptr};
};
TORCH_MODULE(WindowAttention);

class HybridImpl : public Core {
 public:
  explicit HybridImpl(const HybridOptions& options);
  CoreOutput forward(const at::Tensor& x, const State& state = {}, const Timing& timing = {}) override;
  bool draws_noise() const override { return options_.convs5.wrapper.dropout > 0 && options_.attention_every > 1; }
  int64_t telling_frames() const override;
  std::string obstacle_to_frames(int64_t height, int64_t width) const override;
  const HybridOptions& options() const { return options_; }
  void train(bool on = true) override;

 private:
  void check(const at::Tensor& x, const Timing& timing);
  int64_t tokens_kept(const at::Tensor& x, const State& state) const;
  std::vector<StackLayer> stack(const at::Tensor& x, const State& state) const;

  HybridOptions options_;
  std::vector<ConvS5Layer> spaces_;          // by layer, null where it is attention
  std::vector<WindowAttention> attentions_;  // by layer, null where it is a state space
  nn::FiniteCheck finite_;
};
TORCH_MODULE(Hybrid);

}  // namespace convssm::cores
