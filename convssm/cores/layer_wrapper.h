// What stands around the state space of every S5-like layer: norm before or after, the residual and dropout.
//   prenorm   out = u + f(norm(u))          postnorm  out = norm(u + f(u))
#pragma once

#include "convssm/base/option_reader.h"
#include "convssm/nn/modules.h"
#include "convssm/ssm/diagonal_states.h"

namespace convssm::nn {
class FramePlan;
struct Buffer;
}  // namespace convssm::nn

namespace convssm::cores {

struct WrapperOptions {
  bool use_norm = true;
  bool prenorm = false;
  bool skip = true;
  double dropout = 0;  // in training: one mask for all frames of a call, so the law of splitting holds without it
};

void check(const char* operation, const WrapperOptions& options);

// `use_norm`, `prenorm`, `skip`, `dropout`.
void read_wrapper_options(OptionReader& read, WrapperOptions& options);

// For cores that know the order of frames and not their times: dt and step_rescale are errors, with this advice.
void require_no_intervals(const char* operation, const ssm::Timing& timing,
                          const char* advice =
                              "this core knows no time between frames; use one of state spaces, such as "
                              "convs5");

// f's input for the layer input u [N,C,...].
at::Tensor wrap_before(const WrapperOptions& options, nn::Norm& norm, const at::Tensor& u);

// The layer output from u and f's output o, both [L*B,C,...].
at::Tensor wrap_after(const WrapperOptions& options, nn::Norm& norm, const at::Tensor& u, const at::Tensor& o,
                      int64_t L, bool training);

// The same in a plan.
nn::Buffer plan_before(nn::FramePlan& plan, const WrapperOptions& options, nn::Norm& norm, const nn::Buffer& u);
nn::Buffer plan_after(nn::FramePlan& plan, const WrapperOptions& options, nn::Norm& norm, const nn::Buffer& u,
                      const nn::Buffer& o);

}  // namespace convssm::cores
