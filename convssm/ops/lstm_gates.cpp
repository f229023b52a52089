// Keeps the four active gates and c for the backward instead of the sums before them: the slopes of sigmoid and tanh
// follow from their values, so no exponential is computed twice but tanh(c). Both summands of the gates have the same
// gradient, so one tensor is returned for both.
#include "convssm/ops/lstm_gates.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "convssm/ops/check.h"
#include "convssm/ops/device.h"
#include "convssm/ops/elementwise.h"
#include "convssm/ops/libtorch.h"
#include "convssm/ops/lstm_gates_kernels.h"

namespace convssm::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kGateGrain = 4 * 1024;  // state values per task

template <typename T>
T* offset(const at::Tensor& x, int64_t values) {
  return x.defined() ? x.data_ptr<T>() + values : nullptr;
}

// Rows [first,end) of all pixels, on each thread its own.
template <typename Run>
void for_rows(const at::Tensor& c, const Run& run) {
  const int64_t P = c.size(1);
  at::parallel_for(0, c.numel() / P, (kGateGrain + P - 1) / P, run);
}

template <typename T>
void run_forward(const at::Tensor& u, const at::Tensor& h, const at::Tensor& c_prev, const at::Tensor& active,
                 const LstmResult& out) {
  const int64_t P = out.c.size(1);
  for_rows(out.c, [&](int64_t first, int64_t end) {
    const int64_t gates = first * 4 * P, states = first * P;
    lstm_rows(LstmRows<T>{end - first, P, offset<T>(u, gates), offset<T>(h, gates), offset<T>(c_prev, states),
                          offset<T>(active, gates), offset<T>(out.c, states), offset<T>(out.h, states)});
  });
}

template <typename T>
void run_backward(const at::Tensor& active, const at::Tensor& c_prev, const at::Tensor& c, const at::Tensor& grad_c,
                  const at::Tensor& grad_h, const at::Tensor& grad_gates, const at::Tensor& grad_c_prev) {
  const int64_t P = c.size(1);
  for_rows(c, [&](int64_t first, int64_t end) {
    const int64_t gates = first * 4 * P, states = first * P;
    lstm_backward_rows(LstmBackwardRows<T>{end - first, P, offset<T>(active, gates), offset<T>(c_prev, states),
                                           offset<T>(c, states), offset<T>(grad_c, states), offset<T>(grad_h, states),
                                           offset<T>(grad_gates, gates), offset<T>(grad_c_prev, states)});
  });
}

at::Tensor laid_out(const OptionalTensor& x) { return x ? channels_together(*x) : at::Tensor(); }

at::Tensor empty_states(const at::Tensor& gates) {
  std::vector<int64_t> shape = gates.sizes().vec();
  shape[1] /= 4;
  const auto format = shape.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  return at::empty(shape, gates.options().requires_grad(false), format);
}

struct LstmFunction : torch::autograd::Function<LstmFunction> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& u_in, const OptionalTensor& h_in,
                               const OptionalTensor& c_in) {
    const at::Tensor u = channels_together(u_in), h = laid_out(h_in), c_prev = laid_out(c_in);
    const bool keep = u_in.requires_grad() || (h_in && h_in->requires_grad()) || (c_in && c_in->requires_grad());
    const at::Tensor active = keep ? at::empty_like(u) : at::Tensor();
    const LstmResult out{empty_states(u), empty_states(u)};
    if (u.scalar_type() == at::kFloat) {
      run_forward<float>(u, h, c_prev, active, out);
    } else {
      run_forward<double>(u, h, c_prev, active, out);
    }
    ctx->saved_data["with_h"] = h_in.has_value();
    if (keep) ctx->save_for_backward({active, c_prev, out.c});
    return {out.c, out.h};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    require("lstm_gates", !at::GradMode::is_enabled(), "has no second derivative; use lstm_gates_plain");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& active = saved[0];
    const at::Tensor c_prev = saved[1].defined() ? channels_together(saved[1]) : at::Tensor();
    const at::Tensor c = channels_together(saved[2]);
    const at::Tensor grad_c = channels_together(grads[0]), grad_h = channels_together(grads[1]);
    const at::Tensor grad_gates = at::empty_like(active);
    const at::Tensor grad_c_prev = c_prev.defined() ? at::empty_like(c) : at::Tensor();
    if (active.scalar_type() == at::kFloat) {
      run_backward<float>(active, c_prev, c, grad_c, grad_h, grad_gates, grad_c_prev);
    } else {
      run_backward<double>(active, c_prev, c, grad_c, grad_h, grad_gates, grad_c_prev);
    }
    return {grad_gates, ctx->saved_data["with_h"].toBool() ? grad_gates : at::Tensor(), grad_c_prev};
  }
};

void check(const at::Tensor& u, const at::Tensor& h, const at::Tensor& c_prev) {
  require("lstm_gates", u.defined() && (u.dim() == 2 || u.dim() == 4) && u.size(1) % 4 == 0 && u.numel() > 0,
          "the gates must be [N,4P] or [N,4P,H,W], got {}",
          u.defined() ? shape_text(u.sizes()) : "an undefined tensor");
  if (h.defined()) {
    require_shape("lstm_gates", "from_h", h, u.sizes());
    require_like("lstm_gates", "from_h", h, u);
  }
  if (c_prev.defined()) {
    std::vector<int64_t> expected = u.sizes().vec();
    expected[1] /= 4;
    require_shape("lstm_gates", "c_prev", c_prev, expected);
    require_like("lstm_gates", "c_prev", c_prev, u);
  }
}

OptionalTensor given(const at::Tensor& x) { return x.defined() ? OptionalTensor(x) : OptionalTensor(); }

}  // namespace

LstmResult lstm_gates(const at::Tensor& from_u, const at::Tensor& from_h, const at::Tensor& c_prev) {
  check(from_u, from_h, c_prev);
  if (!has_kernels(from_u)) return lstm_gates_plain(from_u, from_h, c_prev);
  const variable_list out = LstmFunction::apply(from_u, given(from_h), given(c_prev));
  return {out[0], out[1]};
}

LstmResult lstm_gates_plain(const at::Tensor& from_u, const at::Tensor& from_h, const at::Tensor& c_prev) {
  check(from_u, from_h, c_prev);
  const auto gates = (from_h.defined() ? from_u + from_h : from_u).chunk(4, 1);
  at::Tensor c = at::sigmoid(gates[0]) * at::tanh(gates[3]);
  if (c_prev.defined()) c = c + at::sigmoid(gates[1]) * c_prev;
  return {c, at::sigmoid(gates[2]) * at::tanh(c)};
}

}  // namespace convssm::ops
