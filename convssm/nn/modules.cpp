// Parameters are float32 and drawn from the caller's stream, so a module's weights depend on its name in the model and
// not on the order of construction. FiniteCheck looks at a parameter again only when its version counter has moved.
#include "convssm/nn/modules.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <tuple>

#include "convssm/ops/check.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/dense.h"
#include "convssm/ops/depthwise.h"
#include "convssm/ops/norm.h"
#include "convssm/ssm/initializers.h"

namespace convssm::nn {
namespace {

std::mutex fewer_mutex;
std::set<std::tuple<int64_t, int64_t, int64_t>> fewer;  // channels, groups that were wanted, and taken

}  // namespace

ConvImpl::ConvImpl(int64_t in, int64_t out, int64_t kernel, Stream stream, bool with_bias) {
  ops::require("Conv", in > 0 && out > 0 && kernel > 0,
               "channels and kernel must be positive, got in {}, out {}, kernel {}", in, out, kernel);
  weight = register_parameter("weight", ssm::lecun_normal({out, in, kernel, kernel}, in * kernel * kernel, stream));
  if (with_bias) bias = register_parameter("bias", at::zeros({out}));
}

at::Tensor ConvImpl::forward(const at::Tensor& x) { return ops::conv2d(x, weight, if_defined(bias)); }

DepthwiseImpl::DepthwiseImpl(int64_t channels, int64_t kernel, Stream stream, bool with_bias, double std) {
  ops::require("Depthwise", channels > 0, "channels must be positive, got {}", channels);
  ops::require("Depthwise", kernel > 0 && kernel % 2 == 1, "the kernel must be odd, so that it has a middle, got {}x{}",
               kernel, kernel);
  const std::vector<int64_t> shape{channels, 1, kernel, kernel};
  weight = register_parameter("weight", std > 0 ? ssm::truncated_normal(shape, std, stream)
                                                : ssm::lecun_normal(shape, kernel * kernel, stream));
  if (with_bias) bias = register_parameter("bias", at::zeros({channels}));
}

at::Tensor DepthwiseImpl::forward(const at::Tensor& x) { return ops::depthwise_conv2d(x, weight, if_defined(bias)); }

DenseImpl::DenseImpl(int64_t in, int64_t out, Stream stream, double scale, bool truncated) {
  ops::require("Dense", in > 0 && out > 0, "channels must be positive, got in {}, out {}", in, out);
  weight = register_parameter("weight", ssm::variance_scaling({out, in}, scale, in, truncated, stream));
  bias = register_parameter("bias", at::zeros({out}));
}

at::Tensor DenseImpl::forward(const at::Tensor& x) { return ops::dense(x, weight, bias); }

NormImpl::NormImpl(int64_t channels) {
  ops::require("Norm", channels > 0, "channels must be positive, got {}", channels);
  weight = register_parameter("weight", at::ones({channels}));
  bias = register_parameter("bias", at::zeros({channels}));
}

at::Tensor NormImpl::group_norm(const at::Tensor& x, int64_t groups, ops::Activation activation) {
  return ops::group_norm(x, groups, weight, bias, activation);
}

at::Tensor NormImpl::layer_norm(const at::Tensor& x) { return ops::layer_norm(x, weight, bias); }

at::Tensor NormImpl::add_layer_norm(const at::Tensor& x, const at::Tensor& y) {
  return ops::add_layer_norm(x, y, weight, bias);
}

int64_t fitting_groups(int64_t channels, int64_t wanted) {
  ops::require("group_norm", channels > 0 && wanted > 0, "channels and groups must be positive, got {} and {}",
               channels, wanted);
  int64_t groups = std::min(channels, wanted);
  while (channels % groups != 0) --groups;
  if (groups != wanted) {
    const std::lock_guard lock(fewer_mutex);
    fewer.insert({channels, wanted, groups});
  }
  return groups;
}

std::vector<std::string> take_fewer_groups() {
  const std::lock_guard lock(fewer_mutex);
  std::vector<std::string> lines;
  for (const auto& [channels, wanted, groups] : fewer) {
    lines.push_back(
        fmt::format("group norm: {} channels cannot be cut into {} groups, {} are taken", channels, wanted, groups));
  }
  fewer.clear();
  return lines;
}

ParameterVersion version_of(const at::Tensor& parameter) {
  return {parameter.data_ptr(), parameter.is_inference() ? 0 : static_cast<uint64_t>(parameter._version())};
}

void FiniteCheck::operator()(const char* operation, const torch::nn::Module& module) {
  if (at::GradMode::is_enabled()) forget();
  size_t i = 0;
  for (const auto& item : module.named_parameters()) {
    const ParameterVersion now = version_of(item.value());
    if (i == seen_.size()) seen_.push_back({nullptr, 0});
    if (seen_[i] != now) ops::require_finite(operation, item.key().c_str(), item.value());
    seen_[i++] = now;
  }
}

}  // namespace convssm::nn
