// The pointwise half of an LSTM cell, fused: with gates i, f, o, g stacked in this order along channels,
//   c = sigmoid(f) c_prev + sigmoid(i) tanh(g),   h = sigmoid(o) tanh(c)
// The convolutions of the input and of the state are separate (the first is done for all frames at once), so the gates
// come as two terms that are summed here.
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::ops {

struct LstmResult {
  at::Tensor c, h;
};

// from_u [N,4P] or [N,4P,H,W]; from_h of the same shape and c_prev [N,P] or [N,P,H,W], both undefined for zero
// -> c, h like c_prev. Differentiable once.
LstmResult lstm_gates(const at::Tensor& from_u, const at::Tensor& from_h, const at::Tensor& c_prev);

// The same in plain tensor operations: the reference, any device, any derivative.
LstmResult lstm_gates_plain(const at::Tensor& from_u, const at::Tensor& from_h, const at::Tensor& c_prev);

}  // namespace convssm::ops
