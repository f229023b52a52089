// The activation block s4nd. A kernel K_h[h] K_w[w] is a scan along the rows and one along the columns after it. In a plan the
// size of the frames is known, so both are written out as depthwise kernels: of 2 W - 1 taps a pixel meets W, where the scans
// in both directions take some 6 multiply-adds for each of the axis_states.
#include <ATen/ATen.h>

#include "convssm/nn/activation_kinds.h"
#include "convssm/nn/axis_states.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/ssm/initializers.h"

namespace convssm::nn {
namespace {

class S4ndBlock : public ActivationBlockImpl {
 public:
  S4ndBlock(const BlockOptions& options, const Stream& stream) {
    const int64_t C = options.channels;
    Stream d = stream.split("D");
    rows_ = register_module("rows", AxisStates(C, options.axis_states, stream.split("rows")));
    columns_ = register_module("columns", AxisStates(C, options.axis_states, stream.split("columns")));
    d_ = register_parameter("D", ssm::normal({C}, 1, d));
    dense_ = register_module("dense", Dense(C, 2 * C, stream.split("dense")));
  }

  Buffer plan(FramePlan& plan, Buffer y) override {
    const int64_t C = y.channels;
    const auto along = [&](const AxisStates& axis, Buffer x, int64_t height, int64_t width) {
      return plan.depthwise(x, axis->kernel((height + width) / 2).view({C, 1, height, width}), {});
    };
    const Buffer rows = along(rows_, y, 1, 2 * y.width - 1);
    const Buffer both = along(columns_, rows, 2 * y.height - 1, 1);
    const Buffer v = plan.add(both, plan.depthwise(y, d_.view({C, 1, 1, 1}), {}), ops::Activation::gelu);
    const auto half = [&](int64_t first) {
      return plan.conv(v, dense_->weight.narrow(0, first, C), dense_->bias.narrow(0, first, C));
    };
    const Buffer values = half(0);
    return plan.gate(values, half(C));
  }

 protected:
  at::Tensor run(const at::Tensor& y) override {
    const int64_t N = y.size(0), C = y.size(1), H = y.size(2), W = y.size(3);
    const at::Tensor rows = rows_(y.permute({3, 0, 2, 1}).reshape({W, N * H, C})).view({W, N, H, C});
    const at::Tensor both = columns_(rows.permute({2, 1, 0, 3}).reshape({H, N * W, C})).view({H, N, W, C});
    const at::Tensor mixed = both.permute({1, 3, 0, 2}) + d_.view({C, 1, 1}) * y;
    return at::glu(dense_(ops::activate(mixed, ops::Activation::gelu)), 1);
  }

 private:
  AxisStates rows_{nullptr}, columns_{nullptr};
  at::Tensor d_;
  Dense dense_{nullptr};
};

}  // namespace

std::shared_ptr<ActivationBlockImpl> make_s4nd_block(const BlockOptions& options, const Stream& stream) {
  return std::make_shared<S4ndBlock>(options, stream);
}

}  // namespace convssm::nn
