// Compiled once per instruction set by Highway; the best one is picked at run time. A vector holds one gate of several
// channels: the four gates of a pixel lie P apart, so a step loads from four streams and writes c and h once. c may be
// updated in place: it is read before it is written.
#include "convssm/ops/lstm_gates_kernels.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/lstm_gates_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/activation-inl.h"
#include "convssm/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

template <typename T>
void forward_rows(const LstmRows<T>& r) {
  const int64_t P = r.states;
  for (int64_t row = 0; row < r.rows; ++row) {
    const int64_t gates = row * 4 * P, states = row * P;
    for_channels<T>(P, [&](auto d, int64_t p) HWY_ATTR {
      const auto gate = [&](int64_t kind) HWY_ATTR {
        const int64_t at = gates + kind * P + p;
        const auto u = hn::LoadU(d, r.from_u + at);
        return r.from_h != nullptr ? hn::Add(u, hn::LoadU(d, r.from_h + at)) : u;
      };
      const auto i = sigmoid(d, gate(0)), f = sigmoid(d, gate(1)), o = sigmoid(d, gate(2));
      const auto g = hn::Tanh(d, gate(3));
      auto c = hn::Mul(i, g);
      if (r.c_prev != nullptr) c = hn::MulAdd(f, hn::LoadU(d, r.c_prev + states + p), c);
      hn::StoreU(c, d, r.c + states + p);
      hn::StoreU(hn::Mul(o, hn::Tanh(d, c)), d, r.h + states + p);
      if (r.active == nullptr) return;
      T* active = r.active + gates + p;
      hn::StoreU(i, d, active);
      hn::StoreU(f, d, active + P);
      hn::StoreU(o, d, active + 2 * P);
      hn::StoreU(g, d, active + 3 * P);
    });
  }
}

// s (1 - s), the slope of a sigmoid of value s.
template <class D, class V>
HWY_INLINE V slope_of(D d, V s) {
  return hn::Mul(s, hn::Sub(hn::Set(d, hn::TFromD<D>{1}), s));
}

template <typename T>
void backward_rows(const LstmBackwardRows<T>& r) {
  const int64_t P = r.states;
  for (int64_t row = 0; row < r.rows; ++row) {
    const int64_t gates = row * 4 * P, states = row * P;
    for_channels<T>(P, [&](auto d, int64_t p) HWY_ATTR {
      const T* active = r.active + gates + p;
      const auto i = hn::LoadU(d, active), f = hn::LoadU(d, active + P);
      const auto o = hn::LoadU(d, active + 2 * P), g = hn::LoadU(d, active + 3 * P);
      const auto one = hn::Set(d, T{1});
      const auto t = hn::Tanh(d, hn::LoadU(d, r.c + states + p)), gh = hn::LoadU(d, r.grad_h + states + p);
      const auto through = hn::Mul(hn::Mul(gh, o), hn::NegMulAdd(t, t, one));
      const auto gc = hn::Add(hn::LoadU(d, r.grad_c + states + p), through);
      const auto c_prev = r.c_prev != nullptr ? hn::LoadU(d, r.c_prev + states + p) : hn::Zero(d);
      T* out = r.grad_gates + gates + p;
      hn::StoreU(hn::Mul(hn::Mul(gc, g), slope_of(d, i)), d, out);
      hn::StoreU(hn::Mul(hn::Mul(gc, c_prev), slope_of(d, f)), d, out + P);
      hn::StoreU(hn::Mul(hn::Mul(gh, t), slope_of(d, o)), d, out + 2 * P);
      hn::StoreU(hn::Mul(hn::Mul(gc, i), hn::NegMulAdd(g, g, one)), d, out + 3 * P);
      if (r.grad_c_prev != nullptr) hn::StoreU(hn::Mul(gc, f), d, r.grad_c_prev + states + p);
    });
  }
}

void LstmFloat(const LstmRows<float>& rows) { forward_rows(rows); }
void LstmDouble(const LstmRows<double>& rows) { forward_rows(rows); }
void LstmBackwardFloat(const LstmBackwardRows<float>& rows) { backward_rows(rows); }
void LstmBackwardDouble(const LstmBackwardRows<double>& rows) { backward_rows(rows); }

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(LstmFloat);
HWY_EXPORT(LstmDouble);
HWY_EXPORT(LstmBackwardFloat);
HWY_EXPORT(LstmBackwardDouble);

void lstm_rows(const LstmRows<float>& rows) { HWY_DYNAMIC_DISPATCH(LstmFloat)(rows); }
void lstm_rows(const LstmRows<double>& rows) { HWY_DYNAMIC_DISPATCH(LstmDouble)(rows); }
void lstm_backward_rows(const LstmBackwardRows<float>& rows) { HWY_DYNAMIC_DISPATCH(LstmBackwardFloat)(rows); }
void lstm_backward_rows(const LstmBackwardRows<double>& rows) { HWY_DYNAMIC_DISPATCH(LstmBackwardDouble)(rows); }

}  // namespace convssm::ops
#endif  // HWY_ONCE
