// The published graph as a table. Every tensor of the file is checked by name, type and shape before one is read. Batch
// norms are folded into the kernels in double and rounded once.
#include "convssm/metrics/i3d_layout.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/io/safetensors.h"
#include "convssm/io/tensor.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

const std::string kRoot = "RGB/inception_i3d/";

std::string kernel_name(const I3dUnit& unit) { return kRoot + unit.name + "/conv_3d/w"; }
std::string norm_name(const I3dUnit& unit, const char* part) { return kRoot + unit.name + "/batch_norm/" + part; }
std::string bias_name(const I3dUnit& unit) { return kRoot + unit.name + "/conv_3d/b"; }

bool is_last(const I3dUnit& unit) { return unit.name == i3d_last_unit().name; }

struct Widths {
  int64_t branch0, reduce1, branch1, reduce2, branch2, branch3;
};

I3dMixed mixed(const std::string& name, int64_t in, const Widths& w) {
  // The published graph has one name that breaks its own pattern.
  const std::string last2 = name == "Mixed_5b" ? "Conv3d_0a_3x3" : "Conv3d_0b_3x3";
  return {{name + "/Branch_0/Conv3d_0a_1x1", 1, 1, in, w.branch0},
          {name + "/Branch_1/Conv3d_0a_1x1", 1, 1, in, w.reduce1},
          {name + "/Branch_1/Conv3d_0b_3x3", 3, 1, w.reduce1, w.branch1},
          {name + "/Branch_2/Conv3d_0a_1x1", 1, 1, in, w.reduce2},
          {name + "/Branch_2/" + last2, 3, 1, w.reduce2, w.branch2},
          {name + "/Branch_3/Conv3d_0b_1x1", 1, 1, in, w.branch3}};
}

template <typename Visit>
void for_each_unit(const Visit& visit) {
  for (const I3dStage& stage : i3d_stages()) {
    if (const auto* unit = std::get_if<I3dUnit>(&stage)) visit(*unit);
    if (const auto* m = std::get_if<I3dMixed>(&stage)) {
      for (const auto& unit : {m->branch0, m->reduce1, m->branch1, m->reduce2, m->branch2, m->branch3}) visit(unit);
    }
  }
  visit(i3d_last_unit());
}

}  // namespace

const std::vector<I3dStage>& i3d_stages() {
  static const std::vector<I3dStage> stages{I3dUnit{"Conv3d_1a_7x7", 7, 2, 3, 64},
                                            I3dPool{1, 1, 3, 2},
                                            I3dUnit{"Conv3d_2b_1x1", 1, 1, 64, 64},
                                            I3dUnit{"Conv3d_2c_3x3", 3, 1, 64, 192},
                                            I3dPool{1, 1, 3, 2},
                                            mixed("Mixed_3b", 192, {64, 96, 128, 16, 32, 32}),
                                            mixed("Mixed_3c", 256, {128, 128, 192, 32, 96, 64}),
                                            I3dPool{3, 2, 3, 2},
                                            mixed("Mixed_4b", 480, {192, 96, 208, 16, 48, 64}),
                                            mixed("Mixed_4c", 512, {160, 112, 224, 24, 64, 64}),
                                            mixed("Mixed_4d", 512, {128, 128, 256, 24, 64, 64}),
                                            mixed("Mixed_4e", 512, {112, 144, 288, 32, 64, 64}),
                                            mixed("Mixed_4f", 528, {256, 160, 320, 32, 128, 128}),
                                            I3dPool{2, 2, 2, 2},
                                            mixed("Mixed_5b", 832, {256, 160, 320, 32, 128, 128}),
                                            mixed("Mixed_5c", 832, {384, 192, 384, 48, 128, 128})};
  return stages;
}

I3dUnit i3d_last_unit() { return {"Logits/Conv3d_0c_1x1", 1, 1, 1024, 400}; }

SamePadding same_padding(int64_t n, int64_t kernel, int64_t stride) {
  const int64_t outputs = (n + stride - 1) / stride;
  const int64_t total = std::max<int64_t>((outputs - 1) * stride + kernel - n, 0);
  return {total / 2, total - total / 2};
}

std::vector<std::pair<std::string, std::vector<int64_t>>> i3d_tensors() {
  std::vector<std::pair<std::string, std::vector<int64_t>>> out;
  for_each_unit([&](const I3dUnit& unit) {
    const int64_t k = unit.kernel;
    out.push_back({kernel_name(unit), {k, k, k, unit.in, unit.out}});
    if (is_last(unit)) {
      out.push_back({bias_name(unit), {unit.out}});
    } else {
      for (const char* part : {"beta", "moving_mean", "moving_variance"}) {
        out.push_back({norm_name(unit, part), {unit.out}});
      }
    }
  });
  return out;
}

I3dWeights::I3dWeights(const std::string& path) : file_(std::make_unique<io::SafetensorsFile>(path)) {
  for (const auto& [name, shape] : i3d_tensors()) {
    if (!file_->contains(name)) {
      fail(ErrorKind::data,
           "[fvd_i3d] {} must hold the tensor {} float32 {}, got {} tensors without it; the weights are those of "
           "rgb_scratch from DeepMind's kinetics-i3d",
           path, name, io::shape_text(shape), file_->names().size());
    }
    const io::TensorInfo& found = file_->info(name);
    if (found.shape != shape || found.dtype != io::DType::f32) {
      fail(ErrorKind::data, "[fvd_i3d] {}: {} must be f32 {}, got {} {}", path, name, io::shape_text(shape),
           io::dtype_name(found.dtype), io::shape_text(found.shape));
    }
  }
}

I3dWeights::~I3dWeights() = default;

at::Tensor I3dWeights::tensor(const std::string& name) const {
  const at::Tensor values = io::to_tensor(file_->read(name));
  if (!at::isfinite(values).all().item<bool>()) {
    fail(ErrorKind::data, "[fvd_i3d] {} must be finite, got NaN or infinity", name);
  }
  return values;
}

I3dWeights::Unit I3dWeights::read(const I3dUnit& unit) const {
  const at::Tensor kernel = tensor(kernel_name(unit)).permute({4, 3, 0, 1, 2}).contiguous();
  if (is_last(unit)) return {kernel, tensor(bias_name(unit)), {}, {}};
  return {kernel, tensor(norm_name(unit, "beta")), tensor(norm_name(unit, "moving_mean")),
          tensor(norm_name(unit, "moving_variance"))};
}

I3dWeights::Folded I3dWeights::folded(const I3dUnit& unit) const {
  const Unit raw = read(unit);
  if (is_last(unit)) return {raw.kernel, raw.offset};
  const at::Tensor scale = (raw.variance.to(at::kDouble) + i3d_epsilon).rsqrt();
  const at::Tensor kernel = raw.kernel.to(at::kDouble) * scale.view({-1, 1, 1, 1, 1});
  const at::Tensor bias = raw.offset.to(at::kDouble) - raw.mean.to(at::kDouble) * scale;
  return {kernel.to(at::kFloat), bias.to(at::kFloat)};
}

}  // namespace convssm::metrics
