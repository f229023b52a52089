// oneDNN is called directly, so that weights are reordered once and not on every call. Its scratch memory comes from
// the caller: a plan shares one block among all its convolutions. The weights keep the layout that is best for one
// frame; primitives for other numbers of frames are made to take it.
#include "convssm/ops/dnnl_conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "convssm/base/poison.h"
#include "convssm/ops/conv_kernel.h"

namespace convssm::ops {
namespace {

using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

dnnl::memory copy_of(const dnnl::memory::desc& desc, const dnnl::engine& engine, const void* values) {
  dnnl::memory memory(desc, engine);
  const auto* bytes = static_cast<const std::byte*>(values);
  std::copy_n(bytes, desc.get_size(), static_cast<std::byte*>(memory.get_data_handle()));
  return memory;
}

// oneDNN 2.6 takes AMX where the processor announces it, and its kernels then end in SIGILL on machines whose system does
// not hand the tiles out (virtual ones). It must be told before it makes its first primitive, by libtorch or by us: when
// the program is loaded. Who sets the environment variable decides for themselves.
[[maybe_unused]] const bool kWithoutAmx = [] {
  if (std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr || std::getenv("DNNL_MAX_CPU_ISA") != nullptr) return false;
  return dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16) == dnnl_success;
}();

}  // namespace

std::string convolution_library() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

bool has_byte_products() {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [isa](dnnl::cpu_isa wanted) {
    return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  return has(dnnl::cpu_isa::avx512_core_vnni) || has(dnnl::cpu_isa::avx2_vnni);
}

// oneDNN does without instructions for products of four bytes.
bool cuts_byte_sums() { return !has_byte_products(); }

DnnlConv::DnnlConv(const DnnlConvSpec& spec, const void* weight, const float* bias)
    : spec_(spec), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
  const ConvShape& s = spec.shape;
  const dnnl::memory::dims sizes{s.out, s.in, s.kernel, s.kernel};
  const Type type = spec.data == Type::f32 ? Type::f32 : Type::s8;
  bias_ = copy_of({{s.out}, Type::f32, Tag::x}, engine_, bias);
  dnnl::memory plain = copy_of({sizes, type, Tag::oihw}, engine_, weight);
  weights_ = dnnl::memory(describe(1, {sizes, type, Tag::any}).weights_desc(), engine_);
  dnnl::reorder(plain, weights_).execute(stream_, plain, weights_);
  stream_.wait();
}

dnnl::convolution_forward::primitive_desc DnnlConv::describe(int64_t frames, const dnnl::memory::desc& weights) const {
  const ConvShape& s = spec_.shape;
  const int64_t border = s.kernel - 1 - spec_.before - spec_.after;
  const dnnl::memory::desc source({frames, s.in, s.height + border, s.width + border}, spec_.data, Tag::nhwc);
  const dnnl::memory::desc target({frames, s.out, s.height, s.width}, Type::f32, Tag::nhwc);
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                             source, weights, bias_.get_desc(), target, {1, 1},
                                             {spec_.before, spec_.before}, {spec_.after, spec_.after});
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (!spec_.scales.empty()) attr.set_output_scales(1 << 1, spec_.scales);
  return {desc, attr, engine_};
}

DnnlConv::Prepared& DnnlConv::prepared(int64_t frames) {
  const auto [found, fresh] = prepared_.try_emplace(frames);
  Prepared& p = found->second;
  if (!fresh) return p;
  const auto chosen = describe(frames, weights_.get_desc());
  p.primitive = dnnl::convolution_forward(chosen);
  p.source = dnnl::memory(chosen.src_desc(), engine_, DNNL_MEMORY_NONE);
  p.target = dnnl::memory(chosen.dst_desc(), engine_, DNNL_MEMORY_NONE);
  p.scratch = dnnl::memory(chosen.scratchpad_desc(), engine_, DNNL_MEMORY_NONE);
  p.scratch_bytes = chosen.scratchpad_desc().get_size();
  p.arguments = {{{DNNL_ARG_SRC, p.source.get()},
                  {DNNL_ARG_WEIGHTS, weights_.get()},
                  {DNNL_ARG_BIAS, bias_.get()},
                  {DNNL_ARG_DST, p.target.get()},
                  {DNNL_ARG_SCRATCHPAD, p.scratch.get()}}};
  return p;
}

// Through the C interface: the one of C++ builds a table of arguments for every call.
void DnnlConv::run(const void* x, float* y, int64_t frames, void* scratch) {
  Prepared& p = prepared(frames);
  if constexpr (poisons_memory) {
    touch(x, p.source.get_desc().get_size());
    touch(y, p.target.get_desc().get_size());
    touch(scratch, p.scratch_bytes);
  }
  p.source.set_data_handle(const_cast<void*>(x));
  p.target.set_data_handle(y);
  if (p.scratch_bytes > 0) p.scratch.set_data_handle(scratch);
  dnnl::error::wrap_c_api(dnnl_primitive_execute(p.primitive.get(), stream_.get(), static_cast<int>(p.arguments.size()),
                                                 p.arguments.data()),
                          "a convolution of oneDNN failed");
  stream_.wait();
}

}  // namespace convssm::ops
