// Rows (pixels) of an LSTM update: gates of 4P channels i, f, o, g, states of P. Raw pointers only; checked by the
// caller.
#pragma once

#include <cstdint>

namespace convssm::ops {

template <typename T>
struct LstmRows {
  int64_t rows, states;
  const T* from_u;
  const T* from_h;  // nullptr = zero
  const T* c_prev;  // nullptr = zero
  T* active;        // the gates after their nonlinearity, for the backward; nullptr = not wanted
  T* c;
  T* h;
};

template <typename T>
struct LstmBackwardRows {
  int64_t rows, states;
  const T* active;
  const T* c_prev;  // nullptr = zero
  const T* c;
  const T* grad_c;
  const T* grad_h;
  T* grad_gates;
  T* grad_c_prev;  // nullptr = not wanted
};

void lstm_rows(const LstmRows<float>& rows);
void lstm_rows(const LstmRows<double>& rows);
void lstm_backward_rows(const LstmBackwardRows<float>& rows);
void lstm_backward_rows(const LstmBackwardRows<double>& rows);

}  // namespace convssm::ops
