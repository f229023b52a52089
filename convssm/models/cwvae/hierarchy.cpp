// Levels run from the top down, each over all its ticks. Products that do not wait for the tick before, those of contexts,
// observations and priors that are not drawn from, are taken for all ticks at once.
#include "convssm/models/cwvae/hierarchy.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/ops/check.h"
#include "convssm/ops/dense.h"

namespace convssm::models::cwvae {
namespace {

constexpr double kStdShift = 0.54;  // added to what goes into the layer of std, as published

// [K,B,n] through a matrix [m,n].
at::Tensor for_all_ticks(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return ops::dense(x.flatten(0, 1), weight, if_defined(bias)).unflatten(0, {x.size(0), x.size(1)});
}

at::Tensor sample(const Gaussian& g, const at::Tensor& noise) {
  return noise.defined() ? g.mean + g.std * noise.to(g.mean.options()) : g.mean;
}

Gaussian stacked(const std::vector<Gaussian>& all) {
  std::vector<at::Tensor> means, stds;
  for (const Gaussian& g : all) means.push_back(g.mean), stds.push_back(g.std);
  return {at::stack(means), at::stack(stds)};
}

}  // namespace

int64_t HierarchyOptions::frames_of(int64_t level) const {
  int64_t frames = 1;
  for (int64_t l = 0; l < level; ++l) frames *= factor;
  return frames;
}

at::Tensor divergence(const Gaussian& p, const Gaussian& q) {
  const at::Tensor ratio = p.std / q.std, distance = (p.mean - q.mean) / q.std;
  return (0.5 * (ratio * ratio + distance * distance - 1) - at::log(ratio)).sum(-1);
}

CellImpl::CellImpl(const HierarchyOptions& o, int64_t context, int64_t observation, bool sees, const Stream& stream)
    : stochastic_(o.stochastic), deterministic_(o.deterministic), embedding_(o.embedding), min_std_(o.min_std) {
  const auto linear = [&](const char* name, int64_t in) {
    return register_module(name, Linear(in, embedding_, stream.split(name)));
  };
  input_ = linear("input", stochastic_ + context);
  gru_ = register_module("gru", Gru(embedding_, deterministic_, stream.split("gru")));
  prior_ = linear("prior", deterministic_);
  prior_head_ = add_head("prior", stream);
  if (!sees) return;
  joint_ = linear("joint", deterministic_ + observation);
  posterior_ = linear("posterior", embedding_);
  posterior_head_ = add_head("posterior", stream);
}

CellImpl::Head CellImpl::add_head(const std::string& name, const Stream& stream) {
  const auto linear = [&](const std::string& full) {
    return register_module(full, Linear(embedding_, stochastic_, stream.split(full)));
  };
  return {linear(name + "_mean"), linear(name + "_std")};
}

Gaussian CellImpl::read(const Head& head, const at::Tensor& q) const {
  const Linear mean = head.mean, std = head.std;
  return {ops::dense(q, mean->weight, mean->bias),
          at::softplus(ops::dense(q + kStdShift, std->weight, std->bias)) + min_std_};
}

Gaussian CellImpl::prior_of(const at::Tensor& h) { return read(prior_head_, at::relu(prior_(h))); }

LevelRun CellImpl::run(const at::Tensor& context, const at::Tensor& observations, const std::vector<bool>& seen,
                       const std::function<at::Tensor(int64_t tick)>& noise, const CellState& start, bool with_priors) {
  const int64_t K = context.size(0), B = context.size(1);
  const bool sees = observations.defined();
  const at::Tensor from_z = input_->weight.slice(1, 0, stochastic_);
  const at::Tensor from_context = for_all_ticks(context, input_->weight.slice(1, stochastic_), input_->bias);
  const at::Tensor from_h = sees ? joint_->weight.slice(1, 0, deterministic_) : at::Tensor();
  const at::Tensor from_observation =
      sees ? for_all_ticks(observations, joint_->weight.slice(1, deterministic_), joint_->bias) : at::Tensor();

  std::vector<at::Tensor> zs, hs;
  std::vector<Gaussian> posteriors;
  CellState now = start;
  for (int64_t k = 0; k < K; ++k) {
    now.h = gru_(at::relu(ops::dense(now.z, from_z) + from_context[k]), now.h);
    Gaussian g;
    if (sees && seen[static_cast<size_t>(k)]) {
      const at::Tensor joint = at::relu(ops::dense(now.h, from_h) + from_observation[k]);
      g = read(posterior_head_, at::relu(posterior_(joint)));
      posteriors.push_back(g);
    } else {
      g = prior_of(now.h);
    }
    now.z = sample(g, noise(k));
    zs.push_back(now.z), hs.push_back(now.h);
  }
  LevelRun out{at::stack(zs), at::stack(hs), {}, {}, now};
  if (!sees || !with_priors) return out;
  const Gaussian prior = prior_of(out.h.flatten(0, 1));
  out.posterior = stacked(posteriors);
  out.prior = {prior.mean.unflatten(0, {K, B}), prior.std.unflatten(0, {K, B})};
  return out;
}

HierarchyImpl::HierarchyImpl(const HierarchyOptions& o, int64_t features, int64_t actions, const Stream& stream)
    : options_(o) {
  for (int64_t l = 0; l < o.levels; ++l) {
    const std::string n = std::to_string(l);
    const int64_t context = o.outputs() + (l == 0 ? actions : 0);
    cells_.push_back(register_module(
        "level" + n, Cell(o, context, features, o.sees(l), stream.split("level", static_cast<uint64_t>(l)))));
    bool needed = false;
    for (int64_t above = l; above < o.levels; ++above) needed = needed || o.sees(above);
    if (l == 0 || !needed) continue;
    upwards_.emplace_back();
    for (int64_t i = 0; i < o.dense_layers; ++i) {
      const std::string name = "upwards" + n + "_" + std::to_string(i);
      const int64_t in = i == 0 ? features : o.dense_features,
                    out = i + 1 == o.dense_layers ? features : o.dense_features;
      upwards_.back().push_back(register_module(name, Linear(in, out, stream.split(name))));
    }
  }
}

std::vector<CellState> HierarchyImpl::zeros(int64_t B, const at::TensorOptions& like) const {
  std::vector<CellState> states;
  for (int64_t l = 0; l < options_.levels; ++l)
    states.push_back({at::zeros({B, options_.stochastic}, like), at::zeros({B, options_.deterministic}, like)});
  return states;
}

// Of all frames [N,E], to the level above `level`.
at::Tensor HierarchyImpl::upwards(size_t level, const at::Tensor& features) {
  at::Tensor x = features;
  const std::vector<Linear>& layers = upwards_[level];
  for (size_t i = 0; i < layers.size(); ++i) {
    Linear layer = layers[i];
    x = layer(x);
    if (i + 1 < layers.size()) x = at::relu(x);
  }
  return x;
}

// For each level the sums over its windows, [ticks,B,E]; the last window may have fewer frames. Undefined where nobody looks.
std::vector<at::Tensor> HierarchyImpl::observations(const at::Tensor& features, const std::vector<bool>& seen) {
  const int64_t T = features.size(0), B = features.size(1);
  std::vector<at::Tensor> all(static_cast<size_t>(options_.levels));
  if (options_.sees(0)) all[0] = features;
  at::Tensor x = features.flatten(0, 1);
  at::Tensor blind;  // [T,1,1], frames that do not count
  if (std::ranges::find(seen, false) != seen.end()) {
    blind = at::zeros({T, 1, 1}, at::kBool);
    for (int64_t t = 0; t < T; ++t) blind.data_ptr<bool>()[t] = !seen[static_cast<size_t>(t)];
    blind = blind.to(features.device());
  }
  for (size_t l = 0; l < upwards_.size(); ++l) {
    x = upwards(l, x);
    if (!options_.sees(static_cast<int64_t>(l) + 1)) continue;
    const int64_t f = options_.frames_of(static_cast<int64_t>(l) + 1), ticks = (T + f - 1) / f;
    at::Tensor counted = x.unflatten(0, {T, B});
    if (blind.defined()) counted = counted.masked_fill(blind, 0);
    if (ticks * f > T) counted = at::constant_pad_nd(counted, {0, 0, 0, 0, 0, ticks * f - T});
    all[l + 1] = counted.unflatten(0, {ticks, f}).sum(1);
  }
  return all;
}

std::vector<LevelRun> HierarchyImpl::run(const at::Tensor& features, const std::vector<bool>& seen,
                                         const at::Tensor& actions, const TickNoise& noise,
                                         const std::vector<CellState>& start, bool with_priors) {
  const int64_t T = features.size(0), B = features.size(1), L = options_.levels;
  const std::vector<at::Tensor> looks = observations(features, seen);
  std::vector<LevelRun> runs(static_cast<size_t>(L));
  const std::vector<CellState> before = start.empty() ? zeros(B, features.options()) : start;
  for (int64_t l = L - 1; l >= 0; --l) {
    const size_t i = static_cast<size_t>(l);
    const int64_t f = options_.frames_of(l), ticks = (T + f - 1) / f;
    std::vector<bool> any(static_cast<size_t>(ticks));
    for (int64_t t = 0; t < T; ++t) {
      if (seen[static_cast<size_t>(t)]) any[static_cast<size_t>(t / f)] = true;
    }
    at::Tensor context =
        l + 1 == L
            ? at::zeros({ticks, B, options_.outputs()}, features.options())
            : at::cat({runs[i + 1].z, runs[i + 1].h}, 2).repeat_interleave(options_.factor, 0).slice(0, 0, ticks);
    if (l == 0 && actions.defined()) context = at::cat({context, actions}, 2);
    runs[i] = cells_[i]->run(
        context, looks[i], any, [&](int64_t tick) { return noise(l, tick); }, before[i], with_priors);
  }
  return runs;
}

std::vector<CellState> HierarchyImpl::step(const std::vector<CellState>& states, int64_t place,
                                           const at::Tensor& action, const TickNoise& noise) {
  std::vector<CellState> now = states;
  const int64_t L = options_.levels, B = states[0].z.size(0);
  for (int64_t l = L - 1; l >= 0; --l) {
    const size_t i = static_cast<size_t>(l);
    const int64_t f = options_.frames_of(l);
    if (place % f != 0) continue;
    at::Tensor context = l + 1 == L ? at::zeros({B, options_.outputs()}, states[0].z.options())
                                    : at::cat({now[i + 1].z, now[i + 1].h}, 1);
    if (l == 0 && action.defined()) context = at::cat({context, action}, 1);
    const auto own = [&](int64_t) { return noise(l, place / f); };
    now[i] = cells_[i]->run(context.unsqueeze(0), {}, {false}, own, now[i], false).last;
  }
  return now;
}

}  // namespace convssm::models::cwvae
