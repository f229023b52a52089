// B * u is one convolution over all frames; A * h goes frame by frame. A missing state skips it instead of convolving
// zeros.
#include "convssm/cores/convrnn.h"

#include <ATen/ATen.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ssm/initializers.h"

namespace convssm::cores {

ConvRNNCellImpl::ConvRNNCellImpl(const ConvCellOptions& options, const Stream& stream) {
  const int64_t U = options.features, k = options.kernel, middle = (k - 1) / 2;
  Stream a = stream.split("A"), b = stream.split("B");
  const at::Tensor kernel = at::zeros({U, U, k, k});
  kernel.select(3, middle).select(2, middle).copy_(ssm::orthogonal(U, a));
  a_ = register_parameter("A", kernel);
  b_ = register_parameter("B", ssm::lecun_normal({U, U, k, k}, U * k * k, b));
}

std::pair<at::Tensor, ConvCell::States> ConvRNNCellImpl::forward(const at::Tensor& u, int64_t L, States states,
                                                                 const at::Tensor& resets) {
  const auto from_u = frames(ops::conv2d(u, b_), L);
  const at::Tensor a = a_.contiguous(at::MemoryFormat::ChannelsLast);
  std::vector<at::Tensor> all;
  for (int64_t k = 0; k < L; ++k) {
    forget(states, resets, k);
    states = {at::tanh(states[0].defined() ? from_u[k] + ops::conv2d(states[0], a) : from_u[k])};
    all.push_back(states[0]);
  }
  return {L == 1 ? all[0] : at::cat(all), states};
}

nn::Buffer ConvRNNCellImpl::plan(nn::FramePlan& plan, const nn::Buffer& u, const std::vector<nn::Buffer>& states) {
  const nn::Buffer h = states[0];
  plan.tanh_step(plan.conv(h, a_, {}, {.add = plan.conv(u, b_, {})}), h);
  return h;
}

ConvRNNImpl::ConvRNNImpl(const ConvRNNOptions& options)
    : ConvCellStackImpl("ConvRNN", options, {"h"}, [](const ConvCellOptions& o, const Stream& stream) {
        return std::shared_ptr<ConvCell>(std::make_shared<ConvRNNCellImpl>(o, stream));
      }) {}

}  // namespace convssm::cores
