// Memory for time: a part of a network keeps only its inputs and is run again when its gradients are wanted.
//   const RecomputeScope scope(true);                        // on this thread, until it ends
//   Tensors y = recompute({layer.get()}, {x}, [=](const Tensors& in) { return Tensors{layer->forward(in[0])}; });
// The second run draws the random numbers of the first, so dropout is the same.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <vector>

namespace convssm::nn {

using Tensors = std::vector<at::Tensor>;

// f(inputs) with the gradients of the inputs and of the parameters of `owners`. Undefined inputs stay undefined. Outside
// of a scope, or without gradients, it is f(inputs) and nothing else. `f` may be called after the caller has returned:
// it captures by value, and no tensor that requires gradients. There is no second derivative.
Tensors recompute(const std::vector<const torch::nn::Module*>& owners, const Tensors& inputs,
                  const std::function<Tensors(const Tensors&)>& f);

class RecomputeScope {
 public:
  explicit RecomputeScope(bool on);
  ~RecomputeScope();
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

 private:
  bool before_;
};

}  // namespace convssm::nn
