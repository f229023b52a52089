// ConvLSTM: LSTM cells whose products with the input and the state are convolutions (the paper's recurrent baseline).
//   (i,f,o,g) = W * [u, h],   c = sigmoid(f) c + sigmoid(i) tanh(g),   h = sigmoid(o) tanh(c),   out = norm(u + h)
// No bias, no peepholes. State: `layers.<i>.c`, `layers.<i>.h`, [B,C,H,W].
#pragma once

#include <torch/nn/pimpl.h>

#include "convssm/cores/conv_cells.h"

namespace convssm::cores {

struct ConvLSTMOptions : ConvCellOptions {
  static ConvLSTMOptions from_json(const nlohmann::json& json) {
    return {ConvCellOptions::from_json("ConvLSTM", json)};
  }
};

// Parameter `kernel` [4P, U+P, k, k]: outputs i, f, o, g; inputs u, h.
class ConvLSTMCellImpl : public ConvCell {
 public:
  ConvLSTMCellImpl(const ConvCellOptions& options, const Stream& stream);
  std::pair<at::Tensor, States> forward(const at::Tensor& u, int64_t L, States states,
                                        const at::Tensor& resets) override;
  nn::Buffer plan(nn::FramePlan& plan, const nn::Buffer& u, const std::vector<nn::Buffer>& states) override;

 private:
  int64_t features_;
  at::Tensor kernel_;
};

class ConvLSTMImpl : public ConvCellStackImpl {
 public:
  explicit ConvLSTMImpl(const ConvLSTMOptions& options);
};
TORCH_MODULE(ConvLSTM);

}  // namespace convssm::cores
