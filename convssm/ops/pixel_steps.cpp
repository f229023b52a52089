// Checks, threads and autograd around the kernels. A frame is one task of the backward, with sums of its own for what all
// pixels share: added in the order of the frames, they do not depend on the number of threads.
#include "convssm/ops/pixel_steps.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "convssm/ops/check.h"
#include "convssm/ops/device.h"
#include "convssm/ops/elementwise.h"
#include "convssm/ops/kept_pixel_states.h"
#include "convssm/ops/libtorch.h"
#include "convssm/ops/pixel_rows.h"

namespace convssm::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Shared {
  KeptPixelStates states;
  at::Tensor times;  // float64 [N], undefined for one

  double time(int64_t frame) const { return times.defined() ? times.data_ptr<double>()[frame] : 1; }
};

template <typename T>
void run_forward(const Shared& shared, const at::Tensor& m, const at::Tensor& b, const at::Tensor& a,
                 const at::Tensor& out) {
  const int64_t P = m.size(1);
  const StepConstants constants = shared.states.constants();
  for_pixel_rows(b, [&](int64_t frame, int64_t first, int64_t end) {
    step_rows(constants,
              StepRows<T>{end - first, shared.time(frame), row_of<T>(m, first, P), row_of<T>(b, first, 2 * P),
                          row_to<T>(a, first, 2 * P), row_to<T>(out, first, 2 * P)});
  });
}

struct StepGradients {
  at::Tensor m, b, sums;  // sums [N,3,P]: by the real and the imaginary part of lambda, by the step
};

template <typename T>
void run_backward(const Shared& shared, const at::Tensor& m, const at::Tensor& b, const at::Tensor& grad_a,
                  const at::Tensor& grad_out, const StepGradients& to) {
  const int64_t P = m.size(1), each = pixels_of(b);
  const StepConstants constants = shared.states.constants();
  at::parallel_for(0, b.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t frame = begin; frame < end; ++frame) {
      const int64_t row = frame * each;
      double* sums = row_to<double>(to.sums, frame, 3 * P);
      step_backward_rows(constants, StepBackwardRows<T>{each, shared.time(frame), row_of<T>(m, row, P),
                                                        row_of<T>(b, row, 2 * P), row_of<T>(grad_a, row, 2 * P),
                                                        row_of<T>(grad_out, row, 2 * P), row_to<T>(to.m, row, P),
                                                        row_to<T>(to.b, row, 2 * P), sums, sums + P, sums + 2 * P});
    }
  });
}

struct StepFunction : torch::autograd::Function<StepFunction> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& re, const at::Tensor& im, const at::Tensor& step,
                               const OptionalTensor& times, const at::Tensor& m_in, const at::Tensor& b_in,
                               int64_t rule, int64_t gain) {
    const Shared shared{
        {re.contiguous(), im.contiguous(), step.contiguous(), static_cast<StepRule>(rule), static_cast<GainRule>(gain)},
        times.value_or(at::Tensor())};
    const at::Tensor m = channels_together(m_in), b = channels_together(b_in);
    const at::Tensor a = empty_pairs(b), out = at::empty_like(b);
    m.scalar_type() == at::kFloat ? run_forward<float>(shared, m, b, a, out)
                                  : run_forward<double>(shared, m, b, a, out);
    ctx->set_materialize_grads(false);
    ctx->saved_data["rule"] = rule;
    ctx->saved_data["gain"] = gain;
    ctx->save_for_backward({shared.states.lambda_re, shared.states.lambda_im, shared.states.step, shared.times, m, b});
    return {as_complex(a), out};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    require("pixel_steps", !at::GradMode::is_enabled(), "has no second derivative; use pixel_steps_plain");
    const variable_list saved = ctx->get_saved_variables();
    const Shared shared{{saved[0], saved[1], saved[2], static_cast<StepRule>(ctx->saved_data["rule"].toInt()),
                         static_cast<GainRule>(ctx->saved_data["gain"].toInt())},
                        saved[3]};
    const at::Tensor &m = saved[4], &b = saved[5];
    const at::Tensor grad_a = as_pairs(grads[0]), grad_out = channels_if_defined(grads[1]);
    const StepGradients to{at::empty_like(m), at::empty_like(b), at::zeros({m.size(0), 3, m.size(1)}, at::kDouble)};
    m.scalar_type() == at::kFloat ? run_backward<float>(shared, m, b, grad_a, grad_out, to)
                                  : run_backward<double>(shared, m, b, grad_a, grad_out, to);
    const at::Tensor sums = to.sums.sum(0);
    return {sums[0], sums[1], sums[2], at::Tensor(), to.m, to.b, at::Tensor(), at::Tensor()};
  }
};

void check(const PixelStates& s, const at::Tensor& times, const at::Tensor& m, const at::Tensor& b) {
  require_dims("pixel_steps", "b", b, 4, "[N,2P,H,W]");
  require("pixel_steps", b.size(1) % 2 == 0, "b must be [N,2P,H,W], got {}", shape_text(b.sizes()));
  const int64_t P = b.size(1) / 2;
  require_shape("pixel_steps", "m", m, {b.size(0), P, b.size(2), b.size(3)});
  require_like("pixel_steps", "m", m, b);
  for (const auto& [name, x] : {std::pair{"lambda_re", s.lambda_re}, {"lambda_im", s.lambda_im}, {"step", s.step}}) {
    require_shape("pixel_steps", name, x, {P});
    require("pixel_steps", x.scalar_type() == at::kDouble, "{} must be float64, got {}", name, dtype_text(x));
  }
  if (times.defined()) require_shape("pixel_steps", "times", times, {b.size(0)});
}

}  // namespace

PixelCoefficients pixel_steps(const PixelStates& states, const at::Tensor& times, const at::Tensor& m,
                              const at::Tensor& b) {
  check(states, times, m, b);
  if (!has_kernels(b)) return pixel_steps_plain(states, times, m, b);
  const OptionalTensor intervals =
      times.defined() ? OptionalTensor(times.to(at::kDouble).contiguous()) : OptionalTensor();
  const variable_list out =
      StepFunction::apply(states.lambda_re, states.lambda_im, kernel_step(states), intervals, m, b,
                          static_cast<int64_t>(states.rule), static_cast<int64_t>(states.gain));
  return {out[0], out[1]};
}

PixelCoefficients pixel_steps_plain(const PixelStates& states, const at::Tensor& times, const at::Tensor& m,
                                    const at::Tensor& b) {
  check(states, times, m, b);
  const int64_t P = m.size(1);
  const auto per_state = [](const at::Tensor& x) { return x.view({-1, 1, 1}); };
  const at::Tensor signal = m.to(at::kDouble), step = per_state(states.step);
  at::Tensor delta = states.rule == StepRule::softplus ? at::softplus(signal + before_softplus(step), 1, 700)
                                                       : 2 * step * at::sigmoid(signal);
  if (times.defined()) delta = delta * times.to(at::kDouble).view({-1, 1, 1, 1});
  const at::Tensor re = per_state(states.lambda_re), im = per_state(states.lambda_im);
  const at::Tensor radius = at::exp(re * delta), angle = im * delta;
  const at::Tensor a = at::complex(radius * at::cos(angle), radius * at::sin(angle));
  const at::Tensor input = at::complex(b.narrow(1, 0, P), b.narrow(1, P, P)).to(at::kComplexDouble);
  at::Tensor out;
  if (states.gain == GainRule::zoh) {
    const at::Tensor half = at::sin(0.5 * angle);
    const at::Tensor less_one = at::complex(at::expm1(re * delta) * at::cos(angle) - 2 * half * half, at::imag(a));
    out = less_one / at::complex(re, im) * input;
  } else {
    out = at::sqrt(at::clamp_min(-at::expm1(2 * re * delta), 1e-300)) * input;
  }
  return {a.to(c10::toComplexType(b.scalar_type())), at::cat({at::real(out), at::imag(out)}, 1).to(b.scalar_type())};
}

}  // namespace convssm::ops
