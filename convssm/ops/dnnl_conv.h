// A convolution of oneDNN on frames [N,H,W,C], its weights reordered once to what the library wants, its primitives made
// once per number of frames. What the kernels of packed_conv_*.cpp share.
#pragma once

#include <array>
#include <dnnl.hpp>
#include <map>
#include <vector>

#include "convssm/ops/packed_conv.h"

namespace convssm::ops {

struct DnnlConvSpec {
  ConvShape shape;     // of the output
  int64_t before = 0;  // zeros that oneDNN puts before and after the input, per axis; 0: the input has them
  int64_t after = 0;
  dnnl::memory::data_type data = dnnl::memory::data_type::f32;  // of the input
  std::vector<float> scales = {};  // of the outputs, for integers; they multiply the bias too
};

class DnnlConv {
 public:
  // weight: values of [out,in,k,k], float32 or int8 as the input wants them; bias [out].
  DnnlConv(const DnnlConvSpec& spec, const void* weight, const float* bias);

  size_t scratch_bytes(int64_t frames) { return prepared(frames).scratch_bytes; }
  void run(const void* x, float* y, int64_t frames, void* scratch);

 private:
  struct Prepared {
    dnnl::convolution_forward primitive;
    dnnl::memory source, target, scratch;
    std::array<dnnl_exec_arg_t, 5> arguments;
    size_t scratch_bytes = 0;
  };
  dnnl::convolution_forward::primitive_desc describe(int64_t frames, const dnnl::memory::desc& weights) const;
  Prepared& prepared(int64_t frames);

  DnnlConvSpec spec_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory weights_, bias_;
  std::map<int64_t, Prepared> prepared_;
};

}  // namespace convssm::ops
