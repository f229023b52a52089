// Rests on the law of cores alone: no chunk knows another but through its state, so any model whose losses add up over
// chunks trains in bounded memory.
#include "convssm/train/gradients.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "convssm/nn/recompute.h"

namespace convssm::train {
namespace {

using models::LossContext;
using models::LossOutput;
using models::Model;
using models::State;

struct Chunk {
  int64_t begin, end;  // input frames; frames begin+1 .. end are predicted
  State start;
};

LossOutput run(Model& model, const data::Clips& clips, const LossContext& context, const Chunk& chunk,
               const State& start) {
  return model.loss(data::frames_of(clips, chunk.begin, chunk.end + 1), context, start);
}

// The chunks with the states they start from, the first from `start`, found without gradients.
std::vector<Chunk> cut(Model& model, const data::Clips& clips, const LossContext& context, int64_t length,
                       const State& start) {
  at::NoGradGuard no_grad;
  const int64_t predicted = clips.frames() - 1;
  std::vector<Chunk> chunks;
  State state = start.detach();
  for (int64_t begin = 0; begin < predicted; begin += length) {
    chunks.push_back({begin, std::min(begin + length, predicted), state});
    if (chunks.back().end < predicted) state = run(model, clips, context, chunks.back(), state).state;
  }
  return chunks;
}

NamedValues values_of(const models::NamedTensors& parts) {
  NamedValues values;
  for (const auto& [name, value] : parts) values.emplace_back(name, value.item<double>());
  return values;
}

// Leaves of the graph with the values of `state`, so that their gradients can be asked for.
State as_leaves(const State& state) {
  State leaves;
  for (const auto& [name, value] : state.items()) {
    at::Tensor leaf = value.detach();
    leaves.set(name, leaf.is_floating_point() ? leaf.requires_grad_(true) : leaf);
  }
  return leaves;
}

}  // namespace

void add_values(NamedValues& sum, const NamedValues& values, double weight) {
  for (const auto& [name, value] : values) {
    const auto found = std::ranges::find(sum, name, &NamedValues::value_type::first);
    if (found != sum.end()) {
      found->second += weight * value;
    } else {
      sum.emplace_back(name, weight * value);
    }
  }
}

double share_of(const Model& model, const data::Clips& some, const data::Clips& all) {
  const double terms = model.loss_terms(all);
  return terms > 0 ? model.loss_terms(some) / terms : 0;
}

LossValues add_gradients(Model& model, const data::Clips& clips, const LossContext& context, int64_t chunk_frames,
                         double weight, bool recompute, const State& begin) {
  const nn::RecomputeScope scope(recompute);
  const int64_t predicted = clips.frames() - 1;
  if (chunk_frames <= 0) chunk_frames = std::max<int64_t>(predicted, 1);
  std::vector<Chunk> chunks = cut(model, clips, context, chunk_frames, begin);
  if (chunks.empty())
    chunks.push_back({0, std::max<int64_t>(predicted, 0), begin.detach()});  // a model of single frames
  LossValues sum;
  State gradient;  // of the loss of the later chunks with respect to the state at the cut
  while (!chunks.empty()) {
    const Chunk chunk = std::move(chunks.back());
    chunks.pop_back();
    const bool first = chunks.empty(), last = chunk.end == std::max<int64_t>(predicted, 0);
    const double share = share_of(model, data::frames_of(clips, chunk.begin, chunk.end + 1), clips);
    const State start = first ? chunk.start : as_leaves(chunk.start);
    const LossOutput out = run(model, clips, context, chunk, start);
    sum.loss += share * out.loss.item<double>();
    add_values(sum.parts, values_of(out.parts), share);
    if (!out.warning.empty()) sum.warning = out.warning;
    if (last) sum.state = out.state.detach();
    std::vector<at::Tensor> roots = {out.loss * (share * weight)}, seeds = {at::Tensor()};
    for (const auto& [name, value] : out.state.items()) {
      if (gradient.empty() || !value.requires_grad() || !gradient.get(name).defined()) continue;
      roots.push_back(value);
      seeds.push_back(gradient.get(name));
    }
    torch::autograd::backward(roots, seeds);
    gradient = State();
    for (const auto& [name, leaf] : start.items()) gradient.set(name, leaf.grad());
  }
  return sum;
}

}  // namespace convssm::train
