// ConvRNN: the vanilla recurrent network with convolutions for products, as the paper's section 2.1 defines it.
//   h = tanh(A * h + B * u),   out = norm(u + h)
// No bias. State: `layers.<i>.h`, [B,C,H,W].
#pragma once

#include <torch/nn/pimpl.h>

#include "convssm/cores/conv_cells.h"

namespace convssm::cores {

struct ConvRNNOptions : ConvCellOptions {
  static ConvRNNOptions from_json(const nlohmann::json& json) { return {ConvCellOptions::from_json("ConvRNN", json)}; }
};

// Parameters `A` [P,P,k,k] and `B` [P,U,k,k]. A begins as a random orthogonal matrix in the middle of its kernel and zero
// around it: it keeps the norm of states and gradients, which only tanh then shrinks.
class ConvRNNCellImpl : public ConvCell {
 public:
  ConvRNNCellImpl(const ConvCellOptions& options, const Stream& stream);
  std::pair<at::Tensor, States> forward(const at::Tensor& u, int64_t L, States states,
                                        const at::Tensor& resets) override;
  nn::Buffer plan(nn::FramePlan& plan, const nn::Buffer& u, const std::vector<nn::Buffer>& states) override;

 private:
  at::Tensor a_, b_;
};

class ConvRNNImpl : public ConvCellStackImpl {
 public:
  explicit ConvRNNImpl(const ConvRNNOptions& options);
};
TORCH_MODULE(ConvRNN);

}  // namespace convssm::cores
