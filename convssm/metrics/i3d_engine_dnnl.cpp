// oneDNN on memory with 8 or 16 channels in a block ([C/b,T,H,W,b]), the layout of its fast 3-D kernels: libtorch would
// reorder to it and back around every layer. A primitive is made per number of frames and padding, and kept: to make one
// takes about as long as to run it. Where oneDNN has only its reference kernel, libtorch computes instead.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "convssm/metrics/i3d_engine.h"
#include "convssm/metrics/i3d_geometry.h"

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

// A primitive for frames of one size.
struct Plan {
  dnnl::primitive primitive;
  dnnl::memory::desc source, target, weights, scratch;
  std::vector<int64_t> out;  // [C/b,T,H,W,b]
  bool slow = false;         // oneDNN has only its reference code for this CPU
};
using Plans = std::map<std::array<int64_t, 5>, Plan>;

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

struct I3dEngine::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  at::Tensor scratch;

  void execute(const Plan& plan, const at::Tensor& x, const at::Tensor& out,
               std::unordered_map<int, dnnl::memory> arguments) {
    const int64_t bytes = static_cast<int64_t>(plan.scratch.get_size());
    if (!scratch.defined() || scratch.numel() < bytes) scratch = at::empty({std::max<int64_t>(bytes, 64)}, at::kByte);
    arguments[DNNL_ARG_SRC] = dnnl::memory(plan.source, engine, x.data_ptr());
    arguments[DNNL_ARG_DST] = dnnl::memory(plan.target, engine, out.data_ptr());
    arguments[DNNL_ARG_SCRATCHPAD] = dnnl::memory(plan.scratch, engine, scratch.data_ptr());
    plan.primitive.execute(stream, arguments);
    stream.wait();
  }
};

I3dEngine::I3dEngine() : impl_(std::make_unique<Impl>()) {}
I3dEngine::~I3dEngine() = default;

struct I3dEngine::Convolution::Impl {
  Impl(I3dEngine::Impl& in, const at::Tensor& kernel_in, const at::Tensor& bias_in, int64_t stride_in)
      : engine(in),
        stride(stride_in),
        kernel(kernel_in.contiguous()),
        bias(bias_in.contiguous()),
        weights({kernel.sizes().vec(), kFloat, Tag::oidhw}, engine.engine, kernel.data_ptr()),
        offsets({{kernel.size(0)}, kFloat, Tag::x}, engine.engine, bias.data_ptr()) {}

  I3dGeometry geometry(const at::Tensor& x, Pads time) const {
    const int64_t size = kernel.size(2);
    return {x.sizes(), {size, stride, size, stride}, time};
  }

  const Plan& plan(const at::Tensor& x, Pads time) {
    const auto [found, fresh] = plans.try_emplace(plan_key(x, time));
    Plan& plan = found->second;
    if (!fresh) return plan;
    const I3dGeometry g = geometry(x, time);
    plan.out = g.output(x.sizes(), kernel.size(0));
    plan.source = describe(x.sizes());
    plan.target = describe(plan.out);
    const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                               plan.source, {weights.get_desc().dims(), kFloat, Tag::any},
                                               offsets.get_desc(), plan.target, g.stride, g.front, g.back);
    const dnnl::convolution_forward::primitive_desc chosen(desc, attributes_with_relu(), engine.engine);
    plan.primitive = dnnl::convolution_forward(chosen);
    plan.weights = chosen.weights_desc();
    plan.scratch = chosen.scratchpad_desc();
    plan.slow = std::string_view(chosen.impl_info_str()).starts_with("ref");
    return plan;
  }

  void pack(const Desc& layout) {
    if (layout == weights.get_desc()) return;
    const at::Tensor values = at::empty({static_cast<int64_t>(layout.get_size() / sizeof(float))}, at::kFloat);
    dnnl::memory in_layout(layout, engine.engine, values.data_ptr());
    dnnl::reorder(weights, in_layout).execute(engine.stream, weights, in_layout);
    engine.stream.wait();
    weights = in_layout;
    packed = values;
  }

  I3dEngine::Impl& engine;
  int64_t stride;
  at::Tensor kernel, bias;
  at::Tensor packed;              // the kernel as oneDNN wants it
  dnnl::memory weights, offsets;  // in the memory of those
  Plans plans;
};

I3dEngine::Convolution::Convolution(I3dEngine& engine, const at::Tensor& kernel, const at::Tensor& bias, int64_t stride)
    : impl_(std::make_unique<Impl>(*engine.impl_, kernel, bias, stride)) {}
I3dEngine::Convolution::Convolution(Convolution&&) noexcept = default;
I3dEngine::Convolution& I3dEngine::Convolution::operator=(Convolution&&) noexcept = default;
I3dEngine::Convolution::~Convolution() = default;

void I3dEngine::Convolution::run(const at::Tensor& x, Pads time, const at::Tensor& out) {
  const Plan& chosen = impl_->plan(x, time);
  if (chosen.slow) return i3d_torch_convolution(impl_->geometry(x, time), x, impl_->kernel, impl_->bias, out);
  impl_->pack(chosen.weights);
  impl_->engine.execute(chosen, x, out, {{DNNL_ARG_WEIGHTS, impl_->weights}, {DNNL_ARG_BIAS, impl_->offsets}});
}

at::Tensor I3dEngine::Convolution::run(const at::Tensor& x, Pads time) {
  const at::Tensor out = at::empty(impl_->plan(x, time).out, at::kFloat);
  run(x, time, out);
  return out;
}

struct I3dEngine::MaxPool::Impl {
  const Plan& plan(const at::Tensor& x, Pads time) {
    const auto [found, fresh] = plans.try_emplace(plan_key(x, time));
    Plan& plan = found->second;
    if (!fresh) return plan;
    const I3dGeometry g(x.sizes(), pool, time);
    plan.out = g.output(x.sizes(), x.size(0) * x.size(4));
    plan.source = describe(x.sizes());
    plan.target = describe(plan.out);
    const dnnl::pooling_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::pooling_max,
                                           plan.source, plan.target, g.stride, g.kernel, g.front, g.back);
    const dnnl::pooling_forward::primitive_desc chosen(desc, attributes(), engine.engine);
    plan.primitive = dnnl::pooling_forward(chosen);
    plan.scratch = chosen.scratchpad_desc();
    return plan;
  }

  I3dEngine::Impl& engine;
  I3dPool pool;
  Plans plans;
};

I3dEngine::MaxPool::MaxPool(I3dEngine& engine, const I3dPool& pool)
    : impl_(std::make_unique<Impl>(Impl{*engine.impl_, pool, {}})) {}
I3dEngine::MaxPool::MaxPool(MaxPool&&) noexcept = default;
I3dEngine::MaxPool& I3dEngine::MaxPool::operator=(MaxPool&&) noexcept = default;
I3dEngine::MaxPool::~MaxPool() = default;

at::Tensor I3dEngine::MaxPool::run(const at::Tensor& x, Pads time) {
  const Plan& chosen = impl_->plan(x, time);
  const at::Tensor out = at::empty(chosen.out, at::kFloat);
  impl_->engine.execute(chosen, x, out, {});
  return out;
}

}  // namespace convssm::metrics
