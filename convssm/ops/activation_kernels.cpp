// Compiled once per instruction set by Highway; the best one is picked at run time. The kind of activation is a
// template parameter, chosen once per call, so that the loop has no branch. Optional arrays (the second summand, the
// kept sum) are tested inside the loop: the test never changes and is predicted.
#include "convssm/ops/activation_kernels.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convssm/ops/activation_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "convssm/ops/activation-inl.h"
#include "convssm/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace convssm::ops {
namespace HWY_NAMESPACE {

template <Activation activation, typename T>
void forward(const ActivateLoop<T>& loop) {
  for_channels<T>(loop.size, [&](auto d, int64_t i) HWY_ATTR {
    auto x = hn::LoadU(d, loop.x + i);
    if (loop.y != nullptr) x = hn::Add(x, hn::LoadU(d, loop.y + i));
    if (loop.sum != nullptr) hn::StoreU(x, d, loop.sum + i);
    hn::StoreU(activation_value<activation>(d, x), d, loop.out + i);
  });
}

template <Activation activation, typename T>
void backward(const ActivateBackwardLoop<T>& loop) {
  for_channels<T>(loop.size, [&](auto d, int64_t i) HWY_ATTR {
    const auto slope = activation_slope<activation>(d, hn::LoadU(d, loop.x + i));
    hn::StoreU(hn::Mul(hn::LoadU(d, loop.g + i), slope), d, loop.out + i);
  });
}

template <typename T>
void forward_any(const ActivateLoop<T>& loop) {
  with_activation(loop.activation, [&](auto activation) { forward<activation()>(loop); });
}

template <typename T>
void backward_any(const ActivateBackwardLoop<T>& loop) {
  with_activation(loop.activation, [&](auto activation) { backward<activation()>(loop); });
}

void ActivateFloat(const ActivateLoop<float>& loop) { forward_any(loop); }
void ActivateDouble(const ActivateLoop<double>& loop) { forward_any(loop); }
void ActivateBackwardFloat(const ActivateBackwardLoop<float>& loop) { backward_any(loop); }
void ActivateBackwardDouble(const ActivateBackwardLoop<double>& loop) { backward_any(loop); }

}  // namespace HWY_NAMESPACE
}  // namespace convssm::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convssm::ops {

HWY_EXPORT(ActivateFloat);
HWY_EXPORT(ActivateDouble);
HWY_EXPORT(ActivateBackwardFloat);
HWY_EXPORT(ActivateBackwardDouble);

void activate_loop(const ActivateLoop<float>& loop) { HWY_DYNAMIC_DISPATCH(ActivateFloat)(loop); }
void activate_loop(const ActivateLoop<double>& loop) { HWY_DYNAMIC_DISPATCH(ActivateDouble)(loop); }
void activate_backward_loop(const ActivateBackwardLoop<float>& loop) {
  HWY_DYNAMIC_DISPATCH(ActivateBackwardFloat)(loop);
}
void activate_backward_loop(const ActivateBackwardLoop<double>& loop) {
  HWY_DYNAMIC_DISPATCH(ActivateBackwardDouble)(loop);
}

}  // namespace convssm::ops
#endif  // HWY_ONCE
