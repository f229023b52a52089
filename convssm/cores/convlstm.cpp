// The kernel is stored as one tensor over [u, h] and cut into its halves: W*[u,h] = Wu*u + Wh*h, of which the first
// term is done for all frames at once. The pointwise rest of a step is one fused kernel.
#include "convssm/cores/convlstm.h"

#include <ATen/ATen.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/lstm_gates.h"
#include "convssm/ssm/initializers.h"

namespace convssm::cores {

ConvLSTMCellImpl::ConvLSTMCellImpl(const ConvCellOptions& options, const Stream& stream) : features_(options.features) {
  const int64_t U = features_, k = options.kernel;
  Stream own = stream.split("kernel");
  kernel_ = register_parameter("kernel", ssm::he_normal({4 * U, 2 * U, k, k}, 2 * U * k * k, own));
}

std::pair<at::Tensor, ConvCell::States> ConvLSTMCellImpl::forward(const at::Tensor& u, int64_t L, States states,
                                                                  const at::Tensor& resets) {
  const at::Tensor of_u = kernel_.narrow(1, 0, features_);
  const at::Tensor of_h = kernel_.narrow(1, features_, features_).contiguous(at::MemoryFormat::ChannelsLast);
  const auto gates = frames(ops::conv2d(u, of_u), L);
  std::vector<at::Tensor> h;
  for (int64_t k = 0; k < L; ++k) {
    forget(states, resets, k);
    const at::Tensor recurrent = states[1].defined() ? ops::conv2d(states[1], of_h) : at::Tensor();
    const ops::LstmResult next = ops::lstm_gates(gates[k], recurrent, states[0]);
    states = {next.c, next.h};
    h.push_back(next.h);
  }
  return {L == 1 ? h[0] : at::cat(h), states};
}

nn::Buffer ConvLSTMCellImpl::plan(nn::FramePlan& plan, const nn::Buffer& u, const std::vector<nn::Buffer>& states) {
  const nn::Buffer from_u = plan.conv(u, kernel_.narrow(1, 0, features_), {});
  const nn::Buffer from_h = plan.conv(states[1], kernel_.narrow(1, features_, features_), {});
  plan.lstm_step(from_u, from_h, states[0], states[1]);
  return states[1];
}

ConvLSTMImpl::ConvLSTMImpl(const ConvLSTMOptions& options)
    : ConvCellStackImpl("ConvLSTM", options, {"c", "h"}, [](const ConvCellOptions& o, const Stream& stream) {
        return std::shared_ptr<ConvCell>(std::make_shared<ConvLSTMCellImpl>(o, stream));
      }) {}

}  // namespace convssm::cores
