// Names of the kinds, what they share, and who makes them.
#include "convssm/nn/activation_block.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <vector>

#include "convssm/nn/activation_kinds.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"

namespace convssm::nn {
namespace {

using Make = std::shared_ptr<ActivationBlockImpl> (*)(const BlockOptions&, const Stream&);

struct KindInfo {
  BlockKind kind;
  const char* name;
  bool takes_squeeze_excite;
  Make make;
};

constexpr std::array kKinds{
    KindInfo{BlockKind::resnet, "resnet", true, make_residual_block},
    KindInfo{BlockKind::standard, "standard", true, make_pixel_block},
    KindInfo{BlockKind::half_glu, "half_glu", false, make_pixel_block},
    KindInfo{BlockKind::diag_resnet, "diag_resnet", false, make_residual_block},
    KindInfo{BlockKind::sparse, "sparse", true, make_residual_block},
    KindInfo{BlockKind::convnext, "convnext", false, make_convnext_block},
    KindInfo{BlockKind::s4nd, "s4nd", false, make_s4nd_block},
};

const KindInfo& info(BlockKind kind) {
  return *std::ranges::find_if(kKinds, [&](const KindInfo& each) { return each.kind == kind; });
}

}  // namespace

const char* name(BlockKind kind) { return info(kind).name; }

BlockKind parse_block_kind(const std::string& text) {
  std::vector<std::string> names;
  for (const KindInfo& each : kKinds) {
    if (text == each.name) return each.kind;
    names.push_back(each.name);
  }
  fail(ErrorKind::usage, "[activation_block] expected {}, got '{}'", fmt::join(names, ", "), text);
}

at::Tensor ActivationBlockImpl::forward(const at::Tensor& y) {
  ops::require_dims("activation_block", "y", y, 4, "[N,C,H,W]");
  return run(y);
}

ActivationBlock make_activation_block(const BlockOptions& options, const Stream& stream) {
  const KindInfo& kind = info(options.kind);
  ops::require("activation_block", options.channels > 0, "channels must be positive, got {}", options.channels);
  ops::require("activation_block", kind.takes_squeeze_excite || !options.squeeze_excite,
               "squeeze_excite goes with resnet, standard or sparse, got {}", kind.name);
  return kind.make(options, stream);
}

SqueezeExciteImpl::SqueezeExciteImpl(int64_t channels, const Stream& stream)
    : down_(channels, std::max<int64_t>(channels / 16, 4), stream.split("down")),
      up_(std::max<int64_t>(channels / 16, 4), channels, stream.split("up")) {
  register_module("down", down_);
  register_module("up", up_);
}

at::Tensor SqueezeExciteImpl::forward(const at::Tensor& x) {
  const at::Tensor gate = at::sigmoid(up_(at::relu(down_(x.mean({2, 3})))));
  return x * gate.unsqueeze(-1).unsqueeze(-1);
}

void SqueezeExciteImpl::plan(FramePlan& plan, Buffer x) {
  plan.squeeze_excite(x, down_->weight, down_->bias, up_->weight, up_->bias);
}

}  // namespace convssm::nn
