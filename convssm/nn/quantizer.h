// Quantizers: feature maps z [N,C,h,w] become codes [N,h,w] and the nearest thing that the codes can say. Four kinds, and one
// that is continuous, whose "codes" are numbers:
//   gradient  a table learned by gradient (VQ-VAE, van den Oord et al. 2017, arXiv 1711.00937; as taming trains it)
//   ema       the table follows the means of what it was chosen for; begins with k-means, dead codes begin again
//   cosine    rows and features on the unit sphere, few dimensions (Yu et al. 2021, arXiv 2110.04627; the table of TECO)
//   fsq       no table: every channel is rounded to one of its levels (Mentzer et al. 2023, arXiv 2309.15505)
//   kl        no codes: z is mean and log variance of a normal latent near N(0,1) (Rombach et al. 2022, arXiv 2112.10752)
// What comes out takes the gradient straight through. Beside it stand the counts of recent use, which say whether the
// table has collapsed; they are buffers, so a training that goes on logs what it would have logged.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/base/random.h"

namespace convssm::nn {

enum class QuantizerKind { gradient, ema, cosine, fsq, kl };

const char* name(QuantizerKind kind);
QuantizerKind parse_quantizer_kind(const std::string& text);

struct QuantizerOptions {
  QuantizerKind kind = QuantizerKind::ema;
  int64_t size = 1024;       // codes; of fsq the product of its levels, of kl 0
  int64_t features = 256;    // of what comes out; by default 256, of cosine 32, of kl 4, of fsq as many as levels
  double beta = 0.25;        // weight of the commitment of z to its code; of kl that of the divergence, 1e-6
  bool legacy_beta = false;  // gradient: beta weighs the table instead, as in the public code of taming
  double decay = 0.99;       // ema
  int64_t kmeans = 10;       // ema: iterations on the first batch; 0: a random table
  double restart = 0.03;     // ema: a code used for less than this share of its equal part begins again; 0: never
  std::vector<int64_t> levels = {8, 5, 5, 5};  // fsq

  int64_t in_features() const { return kind == QuantizerKind::kl ? 2 * features : features; }  // of what goes in

  // From {"name": "ema", "size": 1024, ...}; options of another kind are errors.
  static QuantizerOptions from_json(const char* owner, const nlohmann::json& json);
};

struct Quantized {
  at::Tensor out;                // [N,features,h,w]; its gradient is that of z
  at::Tensor codes;              // [N,h,w] int64; undefined: it is continuous
  at::Tensor loss;               // scalar, the sum of
  at::Tensor commitment, table;  // of z to its codes, of the table to what was chosen; undefined: there is none
  at::Tensor divergence = {};    // kl: from N(0,1), nats of a frame; undefined: there is none
};

// Whether dead codes may begin again at this step: not in the last tenth, where the table settles.
bool codes_may_restart(int64_t step, int64_t steps);

// How a training uses a quantizer.
struct QuantizerUse {
  bool learn = false;         // move tables that learn without gradients, and count
  bool restart = true;        // dead codes may begin again
  Stream random = Stream(0);  // who takes their place; the noise of kl
  bool draw = false;          // kl: a latent is drawn; otherwise it is the mean
};

class Quantizer : public torch::nn::Module {
 public:
  explicit Quantizer(const QuantizerOptions& options);

  virtual Quantized forward(const at::Tensor& z, const QuantizerUse& use) = 0;

  // [N,C,h,w] -> [N,h,w], without gradients, and back to [N,features,h,w]; codes in 0 .. size-1. Of a continuous one the
  // "codes" are what comes out itself, [N,features,h,w].
  virtual at::Tensor codes_of(const at::Tensor& z) = 0;
  virtual at::Tensor embed(const at::Tensor& codes) = 0;

  int64_t size() const { return options_.size; }
  int64_t features() const { return options_.features; }
  int64_t in_features() const { return options_.in_features(); }  // C, of z
  bool continuous() const { return options_.kind == QuantizerKind::kl; }

  // Of recent use, about the last 65,536 codes: exp of the entropy, the share of codes that were chosen at all, and
  // whether that many codes have been seen yet.
  double perplexity() const;
  double used() const;
  bool seen_enough() const;

 protected:
  void check(const at::Tensor& z) const;
  void count(const at::Tensor& codes);

  QuantizerOptions options_;

 private:
  at::Tensor usage_;  // buffer [size]: codes counted, old ones fading; of a continuous one empty
};

std::shared_ptr<Quantizer> make_quantizer(const QuantizerOptions& options, const Stream& stream);

// For each row of x [M,C] the nearest row of the table [n,C], by Euclidean distance; the first of equal ones. [M] int64.
at::Tensor nearest_rows(const at::Tensor& x, const at::Tensor& table);

// Lloyd's algorithm from `count` rows that are drawn without replacement, as long as there are as many. A centre that
// nobody is near stays. [count,C]
at::Tensor kmeans_rows(const at::Tensor& x, int64_t count, int64_t iterations, Stream random);

// exp(-sum p log p) of counts [n]; 0 if all are 0.
double perplexity_of(const at::Tensor& counts);

}  // namespace convssm::nn
