// The input's share of all three gates is one convolution over all frames. n needs r h, which needs the gates: so two
// convolutions of the state per frame, one behind the other. A missing state skips both instead of convolving zeros.
#include "convssm/cores/convgru.h"

#include <ATen/ATen.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ssm/initializers.h"

namespace convssm::cores {

ConvGRUCellImpl::ConvGRUCellImpl(const ConvCellOptions& options, const Stream& stream) : features_(options.features) {
  const auto draw = [&](const char* name) {
    const int64_t U = features_, k = options.kernel;
    Stream own = stream.split(name);
    return register_parameter(name, ssm::he_normal({U, 2 * U, k, k}, 2 * U * k * k, own));
  };
  kernel_z_ = draw("kernel_z");
  kernel_r_ = draw("kernel_r");
  kernel_n_ = draw("kernel_n");
}

std::pair<at::Tensor, ConvCell::States> ConvGRUCellImpl::forward(const at::Tensor& u, int64_t L, States states,
                                                                 const at::Tensor& resets) {
  const int64_t P = features_;
  const auto of_u = [P](const at::Tensor& kernel) { return kernel.narrow(1, 0, P); };
  const auto of_h = [P](const at::Tensor& kernel) { return kernel.narrow(1, P, P); };
  const auto nhwc = at::MemoryFormat::ChannelsLast;
  const auto gates = frames(ops::conv2d(u, at::cat({of_u(kernel_z_), of_u(kernel_r_), of_u(kernel_n_)})), L);
  const at::Tensor zr_of_h = at::cat({of_h(kernel_z_), of_h(kernel_r_)}).contiguous(nhwc);
  const at::Tensor n_of_h = of_h(kernel_n_).contiguous(nhwc);
  std::vector<at::Tensor> all;
  for (int64_t k = 0; k < L; ++k) {
    forget(states, resets, k);
    at::Tensor zr = gates[k].narrow(1, 0, 2 * P), n = gates[k].narrow(1, 2 * P, P);
    const at::Tensor h = states[0].defined() ? states[0] : at::zeros_like(n);
    if (states[0].defined()) zr = zr + ops::conv2d(h, zr_of_h);
    const auto active = at::sigmoid(zr).chunk(2, 1);
    if (states[0].defined()) n = n + ops::conv2d(active[1] * h, n_of_h);
    states = {at::lerp(h, at::tanh(n), active[0])};
    all.push_back(states[0]);
  }
  return {L == 1 ? all[0] : at::cat(all), states};
}

nn::Buffer ConvGRUCellImpl::plan(nn::FramePlan& plan, const nn::Buffer& u, const std::vector<nn::Buffer>& states) {
  const int64_t P = features_;
  const nn::Buffer h = states[0];
  const at::Tensor of_u = at::cat({kernel_z_, kernel_r_, kernel_n_}).narrow(1, 0, P);
  const nn::Buffer from_u = plan.conv(u, of_u, {});
  const nn::Buffer zr = plan.conv(h, at::cat({kernel_z_, kernel_r_}).narrow(1, P, P), {});
  const nn::Buffer n = plan.conv(plan.gru_reset(from_u, zr, h), kernel_n_.narrow(1, P, P), {});
  plan.gru_update(from_u, zr, n, h);
  return h;
}

ConvGRUImpl::ConvGRUImpl(const ConvGRUOptions& options)
    : ConvCellStackImpl("ConvGRU", options, {"h"}, [](const ConvCellOptions& o, const Stream& stream) {
        return std::shared_ptr<ConvCell>(std::make_shared<ConvGRUCellImpl>(o, stream));
      }) {}

}  // namespace convssm::cores
