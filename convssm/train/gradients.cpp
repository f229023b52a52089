#include "convssm/train/gradients.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "convssm/nn/recompute.h"

namespace convssm::train {
namespace {

using models::LossOutput;
using models::Model;
using models::State;

struct Piece {
  int64_t begin, end;  // input frames; frames begin+1 .. end are predicted
  State start;
};

void add(LossValues& sum, const LossOutput& out, double weight) {
  sum.loss += weight * out.loss.item<double>();
  for (size_t i = 0; i < out.parts.size(); ++i) {
    if (sum.parts.size() == i) sum.parts.emplace_back(out.parts[i].first, 0);
    sum.parts[i].second += weight * out.parts[i].second.item<double>();
  }
}

LossOutput run(Model& model, const TrainingClips& clips, const Piece& piece, const State& start) {
  const auto cut = [&](const at::Tensor& x) { return x.defined() ? x.slice(1, piece.begin, piece.end + 1) : x; };
  return model.loss(cut(clips.video), cut(clips.actions), start, cut(clips.inputs));
}

// The pieces with the states they start from, found without gradients.
std::vector<Piece> cut(Model& model, const TrainingClips& clips, int64_t chunk) {
  at::NoGradGuard no_grad;
  const int64_t predicted = clips.video.size(1) - 1;
  std::vector<Piece> pieces;
  State state;
  for (int64_t begin = 0; begin < predicted; begin += chunk) {
    pieces.push_back({begin, std::min(begin + chunk, predicted), state});
    if (pieces.back().end < predicted) state = run(model, clips, pieces.back(), state).state;
  }
  return pieces;
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

LossValues add_gradients(Model& model, const TrainingClips& clips, int64_t chunk_frames, double weight,
                         bool recompute) {
  const nn::RecomputeScope scope(recompute);
  const int64_t predicted = clips.video.size(1) - 1;
  if (chunk_frames <= 0) chunk_frames = std::max<int64_t>(predicted, 1);
  std::vector<Piece> pieces = cut(model, clips, chunk_frames);
  LossValues sum;
  State gradient;  // of the loss of the later pieces with respect to the state at the cut
  while (!pieces.empty()) {
    const Piece piece = std::move(pieces.back());
    pieces.pop_back();
    const double share = static_cast<double>(piece.end - piece.begin) / static_cast<double>(predicted);
    const State start = as_leaves(piece.start);
    const LossOutput out = run(model, clips, piece, start);
    add(sum, out, share);
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
