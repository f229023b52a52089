// The network of Perceiver AR: every position of a sequence is an input, the last ones are latents too. Latents look once at all
// inputs up to their own (cross attention) and then, layer by layer, at the latents up to their own:
//   z = Linear(E);   z = z + Attn(LN(z), LN(E)),  z = z + MLP(LN(z));   L times  z = z + Attn(LN(z)),  z = z + MLP(LN(z))
//   logits = Linear(LN(z)), zero at first;   MLP = dense, max(0,x)^2, dense;   LN with epsilon 1e-5
// Position p holds what was written before it and says what is written at p. It knows no caches and no windows: what queries may
// look at is the caller's, who mixes (Mix).
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <vector>

#include "convssm/base/random.h"
#include "convssm/nn/modules.h"

namespace convssm::models::perceiver_ar {

struct NetworkOptions {
  int64_t codes = 1024, rows = 16, columns = 16;  // of a frame, which is written row by row
  int64_t features = 512;                         // D
  int64_t layers = 8, heads = 8;
  int64_t widening = 4;          // hidden features of an MLP: widening D
  double rotary_fraction = 0.5;  // share of the channels of a head that turn with the position; 0: none
  double wavelength = 76800;     // of the slowest of them, / 2 pi
  bool axes = false;             // positions (frame, row, column) are added: sinusoids, and two tables that learn

  int64_t head_size() const { return features / heads; }
  int64_t pairs() const;  // of channels that turn
  int64_t tokens_per_frame() const { return rows * columns; }
};

// What a training step leaves out, a function of the stream alone.
struct Dropout {
  double rate = 0;
  Stream stream = Stream(0);

  Dropout split(const char* name, uint64_t index = 0) const { return {rate, stream.split(name, index)}; }
  at::Tensor operator()(const at::Tensor& x) const;
};

// The rotation of positions: cosines and sines [T,pairs]; undefined if nothing turns.
struct Turn {
  at::Tensor cosines, sines;

  Turn slice(int64_t begin, int64_t end) const;
  at::Tensor operator()(const at::Tensor& x) const;  // [B,heads,T,size]
};

struct KeysValues {
  at::Tensor keys, values;  // [B,heads,T,size]
};

// What latents take: of the inputs, of queries [B,heads,m,size]; of each other, in a layer, of theirs.
using CrossMix = std::function<at::Tensor(const at::Tensor& queries)>;
using LayerMix = std::function<at::Tensor(int64_t layer, const at::Tensor& queries, const KeysValues& own)>;

// What the two kinds of attention share: norm1 of the latents, and all that follows. Parameters: norm1, out, norm2, mlp1, mlp2.
class AttentionBlock : public torch::nn::Module {
 public:
  AttentionBlock(const NetworkOptions& options, const Stream& stream);

  // Latents z [B*m,D] and what they took, [B,heads,m,size].
  at::Tensor after(const at::Tensor& z, const at::Tensor& attended, const Dropout& dropout);

 protected:
  int64_t heads_, size_;
  nn::Norm norm1_, norm2_;
  nn::Dense out_, mlp1_, mlp2_;
};

class CrossBlockImpl : public AttentionBlock {
 public:
  CrossBlockImpl(const NetworkOptions& options, const Stream& stream);
  at::Tensor queries(const at::Tensor& z, int64_t B, const Turn& turn);           // [B*m,D] -> [B,heads,m,size]
  KeysValues keys_values(const at::Tensor& inputs, int64_t B, const Turn& turn);  // [B*T,D]

 private:
  nn::Norm norm_kv_;
  nn::Dense q_, kv_;
};
TORCH_MODULE(CrossBlock);

class LayerBlockImpl : public AttentionBlock {
 public:
  LayerBlockImpl(const NetworkOptions& options, const Stream& stream);
  at::Tensor forward(const at::Tensor& z, int64_t B, const Turn& turn, int64_t layer, const LayerMix& mix,
                     const Dropout& dropout);

 private:
  nn::Dense qkv_;
};
TORCH_MODULE(LayerBlock);

class NetworkImpl : public torch::nn::Module {
 public:
  NetworkImpl(const NetworkOptions& options, const Stream& stream);

  const NetworkOptions& options() const { return options_; }
  int64_t start_token() const { return options_.codes; }

  // E [N,D] of what was written before each of N positions (tokens and positions [N] int64), with the embedded actions of their
  // frames [N,D], if there are any.
  at::Tensor embed(const at::Tensor& tokens, const at::Tensor& positions, const at::Tensor& actions) const;

  // Of positions first, first + 1, ..., in the type of the parameters.
  Turn turn(int64_t first, int64_t count) const;

  CrossBlock& cross() { return cross_; }

  // Logits [B*m,codes] of latents at E [B*m,D].
  at::Tensor forward(const at::Tensor& embedded, int64_t B, const Turn& turn, const CrossMix& cross,
                     const LayerMix& layers, const Dropout& dropout = {});

 private:
  at::Tensor frame_positions(const at::Tensor& positions) const;  // of the axes

  NetworkOptions options_;
  at::Tensor tokens_, rows_, columns_;
  nn::Dense latent_, logits_;
  CrossBlock cross_;
  std::vector<LayerBlock> layers_;
  nn::Norm norm_;
};
TORCH_MODULE(Network);

}  // namespace convssm::models::perceiver_ar
