// The latents of CW-VAE: levels of recurrent cells, of which level l ticks every f^l frames. A cell has a stochastic state z
// and a deterministic one h:
//   h_k = GRU(relu(Dense[z_{k-1}, context_k]), h_{k-1})                                     context: [z, h] of the level above
//   prior      z_k ~ N(mean, std) of relu(Dense(h_k))                                       std = softplus(Dense(. + 0.54)) + min_std
//   posterior  z_k ~ N(mean, std) of relu(Dense(relu(Dense[h_k, observation_k])))
// The observation of a tick is the sum of features of the frames of its window that were seen; a tick none of whose frames
// was seen takes the prior. The top level has zeros for its context, level 0 the actions beside it.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <vector>

#include "convssm/models/cwvae/layers.h"

namespace convssm::models::cwvae {

struct HierarchyOptions {
  int64_t levels = 3, factor = 6;
  int64_t stochastic = 20, deterministic = 200, embedding = 200;
  int64_t dense_layers = 3, dense_features = 1000;  // between the observations of a level and the next
  double min_std = 1e-4;
  std::vector<int64_t> use_obs = {};  // 0 or 1 for each level; empty: all see

  int64_t outputs() const { return stochastic + deterministic; }  // of a tick, [z, h]
  int64_t frames_of(int64_t level) const;                         // f^level
  int64_t window() const { return frames_of(levels - 1); }
  bool sees(int64_t level) const { return use_obs.empty() || use_obs[static_cast<size_t>(level)] != 0; }
};

struct Gaussian {
  at::Tensor mean, std;
};

// KL(p || q), summed over the last axis.
at::Tensor divergence(const Gaussian& p, const Gaussian& q);

struct CellState {
  at::Tensor z, h;  // [B,s], [B,d]
};

// Standard normal numbers [B,s] of a tick; undefined: it takes the mean.
using TickNoise = std::function<at::Tensor(int64_t level, int64_t tick)>;

// What a level did over K ticks.
struct LevelRun {
  at::Tensor z, h;            // [K,B,s], [K,B,d]
  Gaussian posterior, prior;  // [K,B,s]; of runs with priors, of levels that see
  CellState last;
};

class CellImpl : public torch::nn::Module {
 public:
  CellImpl(const HierarchyOptions& options, int64_t context, int64_t observation, bool sees, const Stream& stream);

  // context [K,B,c]; observations [K,B,e], undefined of a level that does not see; `seen`: of which ticks there are any.
  LevelRun run(const at::Tensor& context, const at::Tensor& observations, const std::vector<bool>& seen,
               const std::function<at::Tensor(int64_t tick)>& noise, const CellState& start, bool with_priors);

 private:
  struct Head {
    Linear mean{nullptr}, std{nullptr};
  };
  Head add_head(const std::string& name, const Stream& stream);
  Gaussian read(const Head& head, const at::Tensor& q) const;
  Gaussian prior_of(const at::Tensor& h);

  int64_t stochastic_, deterministic_, embedding_;
  double min_std_;
  Linear input_{nullptr}, prior_{nullptr}, joint_{nullptr}, posterior_{nullptr};
  Gru gru_{nullptr};
  Head prior_head_, posterior_head_;
};
TORCH_MODULE(Cell);

class HierarchyImpl : public torch::nn::Module {
 public:
  // Of frames of `features` numbers and actions of `actions`.
  HierarchyImpl(const HierarchyOptions& options, int64_t features, int64_t actions, const Stream& stream);

  // T frames from the beginning of a window of the top level on: features [T,B,E] of those that were seen, the embedded actions
  // [T,B,A] that lead to them (undefined: none), states of all levels, or none at the beginning. From level 0 upwards.
  // `with_priors`: also what the priors say where posteriors are drawn from; all frames must have been seen.
  std::vector<LevelRun> run(const at::Tensor& features, const std::vector<bool>& seen, const at::Tensor& actions,
                            const TickNoise& noise, const std::vector<CellState>& start, bool with_priors);

  // One frame by the priors: those levels tick whose windows begin with frame `place` of a window of the top level.
  std::vector<CellState> step(const std::vector<CellState>& states, int64_t place, const at::Tensor& action,
                              const TickNoise& noise);

  std::vector<CellState> zeros(int64_t B, const at::TensorOptions& like) const;

 private:
  std::vector<at::Tensor> observations(const at::Tensor& features, const std::vector<bool>& seen);
  at::Tensor upwards(size_t level, const at::Tensor& features);

  HierarchyOptions options_;
  std::vector<Cell> cells_;
  std::vector<std::vector<Linear>> upwards_;  // [level - 1]
};
TORCH_MODULE(Hierarchy);

}  // namespace convssm::models::cwvae
