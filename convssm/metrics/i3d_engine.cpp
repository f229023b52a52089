// oneDNN on memory with 8 or 16 channels in a block ([C/b,T,H,W,b]), the layout of its fast 3-D kernels: libtorch would
// reorder to it and back around every layer. A primitive is made per number of frames and padding, and kept. Where
// oneDNN has only its reference kernel, libtorch computes instead.
#include "convssm/metrics/i3d_engine.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <string_view>

namespace convssm::metrics {
namespace {

using Tag = dnnl::memory::format_tag;
using Desc = dnnl::memory::desc;
constexpr auto kFloat = dnnl::memory::data_type::f32;

// Sizes [C/b,T,H,W,b], or [C,T,H,W] without blocks.
Desc describe(at::IntArrayRef sizes) {
  const bool blocked = sizes.size() == 5;
  const int64_t channels = blocked ? sizes[0] * sizes[4] : sizes[0];
  const Tag tag = !blocked ? Tag::ncdhw : i3d_block() == 16 ? Tag::nCdhw16c : Tag::nCdhw8c;
  return {{1, channels, sizes[1], sizes[2], sizes[3]}, kFloat, tag};
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::primitive_attr attributes_with_relu() {
  dnnl::primitive_attr attr = attributes();
  dnnl::post_ops after;
  after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
  attr.set_post_ops(after);
  return attr;
}

// Kernel, stride and padding of time, height, width.
struct Geometry {
  dnnl::memory::dims kernel, stride, front, back;

  Geometry(at::IntArrayRef x, const I3dPool& k, I3dEngine::Pads time)
      : kernel{k.time_kernel, k.kernel, k.kernel}, stride{k.time_stride, k.stride, k.stride} {
    const SamePadding rows = same_padding(x[2], k.kernel, k.stride), columns = same_padding(x[3], k.kernel, k.stride);
    front = {time.front, rows.front, columns.front};
    back = {time.back, rows.back, columns.back};
  }

  std::vector<int64_t> output(at::IntArrayRef x, int64_t channels) const {
    std::vector<int64_t> out{channels / i3d_block()};
    for (size_t d = 0; d < 3; ++d) out.push_back((x[d + 1] + front[d] + back[d] - kernel[d]) / stride[d] + 1);
    out.push_back(i3d_block());
    return out;
  }
};

// Frames and padding, and the threads that the primitive was split for.
std::array<int64_t, 5> plan_key(const at::Tensor& x, I3dEngine::Pads time) {
  return {x.size(0), x.size(1), time.front, time.back, at::get_num_threads()};
}

}  // namespace

int64_t i3d_block() {
  static const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  constexpr auto wide = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (isa & wide) == wide ? 16 : 8;
}

int64_t i3d_padded(int64_t channels) { return (channels + i3d_block() - 1) / i3d_block() * i3d_block(); }

I3dEngine::I3dEngine() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

void I3dEngine::execute(const Plan& plan, const at::Tensor& x, const at::Tensor& out,
                        std::unordered_map<int, dnnl::memory> arguments) {
  const int64_t bytes = static_cast<int64_t>(plan.scratch.get_size());
  if (!scratch_.defined() || scratch_.numel() < bytes) scratch_ = at::empty({std::max<int64_t>(bytes, 64)}, at::kByte);
  arguments[DNNL_ARG_SRC] = dnnl::memory(plan.source, engine_, x.data_ptr());
  arguments[DNNL_ARG_DST] = dnnl::memory(plan.target, engine_, out.data_ptr());
  arguments[DNNL_ARG_SCRATCHPAD] = dnnl::memory(plan.scratch, engine_, scratch_.data_ptr());
  plan.primitive.execute(stream_, arguments);
  stream_.wait();
}

I3dEngine::Convolution::Convolution(I3dEngine& engine, const at::Tensor& kernel, const at::Tensor& bias, int64_t stride)
    : engine_(engine),
      out_(kernel.size(0)),
      kernel_(kernel.size(2)),
      stride_(stride),
      kernel_values_(kernel.contiguous()),
      bias_values_(bias.contiguous()),
      weights_({kernel.sizes().vec(), kFloat, Tag::oidhw}, engine.engine_, kernel_values_.data_ptr()),
      bias_({{out_}, kFloat, Tag::x}, engine.engine_, bias_values_.data_ptr()) {}

const I3dEngine::Plan& I3dEngine::Convolution::plan(const at::Tensor& x, Pads time) {
  const auto [found, fresh] = plans_.try_emplace(plan_key(x, time));
  Plan& plan = found->second;
  if (!fresh) return plan;
  const Geometry g(x.sizes(), {kernel_, stride_, kernel_, stride_}, time);
  plan.out = g.output(x.sizes(), out_);
  plan.source = describe(x.sizes());
  plan.target = describe(plan.out);
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                             plan.source, {weights_.get_desc().dims(), kFloat, Tag::any},
                                             bias_.get_desc(), plan.target, g.stride, g.front, g.back);
  const dnnl::convolution_forward::primitive_desc chosen(desc, attributes_with_relu(), engine_.engine_);
  plan.primitive = dnnl::convolution_forward(chosen);
  plan.weights = chosen.weights_desc();
  plan.scratch = chosen.scratchpad_desc();
  plan.slow = std::string_view(chosen.impl_info_str()).starts_with("ref");
  return plan;
}

void I3dEngine::Convolution::pack(const Desc& layout) {
  if (layout == weights_.get_desc()) return;
  const at::Tensor values = at::empty({static_cast<int64_t>(layout.get_size() / sizeof(float))}, at::kFloat);
  dnnl::memory packed(layout, engine_.engine_, values.data_ptr());
  dnnl::reorder(weights_, packed).execute(engine_.stream_, weights_, packed);
  engine_.stream_.wait();
  weights_ = packed;
  packed_ = values;
}

void I3dEngine::Convolution::run(const at::Tensor& x, Pads time, const at::Tensor& out) {
  const Plan& chosen = plan(x, time);
  if (chosen.slow) return run_in_libtorch(x, time, out);
  pack(chosen.weights);
  engine_.execute(chosen, x, out, {{DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_BIAS, bias_}});
}

void I3dEngine::Convolution::run_in_libtorch(const at::Tensor& x, Pads time, const at::Tensor& out) {
  const Geometry g(x.sizes(), {kernel_, stride_, kernel_, stride_}, time);
  const at::Tensor frames = x.dim() == 4 ? x : x.permute({0, 4, 1, 2, 3}).flatten(0, 1);
  const at::Tensor padded =
      at::constant_pad_nd(frames, {g.front[2], g.back[2], g.front[1], g.back[1], g.front[0], g.back[0]});
  const at::Tensor y = at::conv3d(padded.unsqueeze(0), kernel_values_, bias_values_, g.stride).relu_()[0];
  at::Tensor(out).copy_(y.unflatten(0, {out.size(0), out.size(4)}).permute({0, 2, 3, 4, 1}));
}

at::Tensor I3dEngine::Convolution::run(const at::Tensor& x, Pads time) {
  const at::Tensor out = at::empty(plan(x, time).out, at::kFloat);
  run(x, time, out);
  return out;
}

const I3dEngine::Plan& I3dEngine::MaxPool::plan(const at::Tensor& x, Pads time) {
  const auto [found, fresh] = plans_.try_emplace(plan_key(x, time));
  Plan& plan = found->second;
  if (!fresh) return plan;
  const Geometry g(x.sizes(), pool_, time);
  plan.out = g.output(x.sizes(), x.size(0) * x.size(4));
  plan.source = describe(x.sizes());
  plan.target = describe(plan.out);
  const dnnl::pooling_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::pooling_max, plan.source,
                                         plan.target, g.stride, g.kernel, g.front, g.back);
  const dnnl::pooling_forward::primitive_desc chosen(desc, attributes(), engine_.engine_);
  plan.primitive = dnnl::pooling_forward(chosen);
  plan.scratch = chosen.scratchpad_desc();
  return plan;
}

at::Tensor I3dEngine::MaxPool::run(const at::Tensor& x, Pads time) {
  const Plan& chosen = plan(x, time);
  const at::Tensor out = at::empty(chosen.out, at::kFloat);
  engine_.execute(chosen, x, out, {});
  return out;
}

}  // namespace convssm::metrics
