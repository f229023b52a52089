// ConvGRU: gated recurrent units with convolutions for products, in the form of Ballas et al.
//   z = sigmoid(Wz * [u, h]),  r = sigmoid(Wr * [u, h]),  n = tanh(Wn * [u, r h]),  h = (1 - z) h + z n
// No bias, out = norm(u + h). State: `layers.<i>.h`, [B,C,H,W].
#pragma once

#include <torch/nn/pimpl.h>

#include "convssm/cores/conv_cells.h"

namespace convssm::cores {

struct ConvGRUOptions : ConvCellOptions {
  static ConvGRUOptions from_json(const nlohmann::json& json) { return {ConvCellOptions::from_json("ConvGRU", json)}; }
};

// Parameters `kernel_z`, `kernel_r`, `kernel_n`, each [P, U+P, k, k] with inputs u, h.
class ConvGRUCellImpl : public ConvCell {
 public:
  ConvGRUCellImpl(const ConvCellOptions& options, const Stream& stream);
  std::pair<at::Tensor, States> forward(const at::Tensor& u, int64_t L, States states,
                                        const at::Tensor& resets) override;
  nn::Buffer plan(nn::FramePlan& plan, const nn::Buffer& u, const std::vector<nn::Buffer>& states) override;

 private:
  int64_t features_;
  at::Tensor kernel_z_, kernel_r_, kernel_n_;
};

class ConvGRUImpl : public ConvCellStackImpl {
 public:
  explicit ConvGRUImpl(const ConvGRUOptions& options);
};
TORCH_MODULE(ConvGRU);

}  // namespace convssm::cores
