// Dropout draws one mask per sample and uses it for all frames: a mask per frame would be noise that the recurrence
// sums up. Sum and norm are one fused operation where both are wanted.
#include "convssm/cores/layer_wrapper.h"

#include <ATen/ATen.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"

namespace convssm::cores {
namespace {

at::Tensor dropout_over_time(const at::Tensor& o, double rate, int64_t L) {
  std::vector<int64_t> shape = o.sizes().vec();
  shape[0] /= L;
  const at::Tensor mask = at::bernoulli(at::full(shape, 1 - rate, o.options())) / (1 - rate);
  std::vector<int64_t> sequence = shape;
  sequence.insert(sequence.begin(), L);
  return (o.reshape(sequence) * mask).flatten(0, 1);
}

}  // namespace

void check(const char* operation, const WrapperOptions& options) {
  ops::require(operation, options.dropout >= 0 && options.dropout < 1, "dropout must be in [0,1), got {}",
               options.dropout);
}

void read_wrapper_options(OptionReader& read, WrapperOptions& options) {
  read("use_norm", options.use_norm);
  read("prenorm", options.prenorm);
  read("skip", options.skip);
  read("dropout", options.dropout);
}

void require_no_intervals(const char* operation, const ssm::Timing& timing, const char* advice) {
  ops::require(operation, !timing.dt.defined(), "dt is not supported: {}", advice);
  ops::require(operation, timing.step_rescale == 1, "step_rescale must be 1, got {}: {}", timing.step_rescale, advice);
}

at::Tensor wrap_before(const WrapperOptions& options, nn::Norm& norm, const at::Tensor& u) {
  return options.use_norm && options.prenorm ? norm->layer_norm(u) : u;
}

at::Tensor wrap_after(const WrapperOptions& options, nn::Norm& norm, const at::Tensor& u, const at::Tensor& o,
                      int64_t L, bool training) {
  const at::Tensor out = training && options.dropout > 0 ? dropout_over_time(o, options.dropout, L) : o;
  const bool postnorm = options.use_norm && !options.prenorm;
  if (postnorm) return options.skip ? norm->add_layer_norm(u, out) : norm->layer_norm(out);
  return options.skip ? u + out : out;
}

nn::Buffer plan_before(nn::FramePlan& plan, const WrapperOptions& options, nn::Norm& norm, const nn::Buffer& u) {
  return options.use_norm && options.prenorm ? plan.layer_norm(u, norm->weight, norm->bias) : u;
}

nn::Buffer plan_after(nn::FramePlan& plan, const WrapperOptions& options, nn::Norm& norm, const nn::Buffer& u,
                      const nn::Buffer& o) {
  const bool postnorm = options.use_norm && !options.prenorm;
  if (!postnorm) return options.skip ? plan.add(u, o) : o;
  if (options.skip) return plan.add_layer_norm(u, o, norm->weight, norm->bias);
  return plan.layer_norm(o, norm->weight, norm->bias);
}

}  // namespace convssm::cores
