// Values are drawn one after the other in double and rounded at the end, as in ssm/initializers.h.
#include "convssm/models/cwvae/layers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "convssm/ops/check.h"
#include "convssm/ops/dense.h"
#include "convssm/ops/strided_conv.h"
#include "convssm/ssm/initializers.h"

namespace convssm::models::cwvae {
namespace {

constexpr int64_t kDownKernel = 4, kStride = 2;
constexpr double kSlope = 0.2;  // of leaky ReLU

int64_t down_size(int64_t size, int64_t padding) { return (size + 2 * padding - kDownKernel) / kStride + 1; }

std::string layer_name(const char* what, size_t i) { return what + std::to_string(i); }

}  // namespace

at::Tensor glorot_uniform(at::IntArrayRef shape, int64_t fan_in, int64_t fan_out, Stream& stream) {
  if (ssm::WithoutValues::now()) return at::zeros(shape);
  const double limit = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  at::Tensor x = at::empty(shape);
  float* values = x.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) values[i] = static_cast<float>(stream.uniform(-limit, limit));
  return x;
}

// The signs of R's diagonal make the factor of a normal matrix uniform over the orthogonal ones.
at::Tensor orthogonal(int64_t rows, int64_t columns, Stream& stream) {
  if (ssm::WithoutValues::now()) return at::zeros({rows, columns});
  const at::Tensor drawn = ssm::normal({rows, columns}, 1, stream).to(at::kDouble);
  const auto [q, r] = at::linalg_qr(drawn);
  return (q * at::sign(at::diagonal(r))).to(at::kFloat).contiguous();
}

LinearImpl::LinearImpl(int64_t in, int64_t out, Stream stream) {
  weight = register_parameter("weight", glorot_uniform({out, in}, in, out, stream));
  bias = register_parameter("bias", at::zeros({out}));
}

at::Tensor LinearImpl::forward(const at::Tensor& x) { return ops::dense(x, weight, bias); }

GruImpl::GruImpl(int64_t in, int64_t size, Stream stream) {
  input = register_parameter("input", glorot_uniform({3 * size, in}, in, 3 * size, stream));
  hidden = register_parameter("hidden", orthogonal(3 * size, size, stream));
  input_bias = register_parameter("input_bias", at::zeros({3 * size}));
  hidden_bias = register_parameter("hidden_bias", at::zeros({3 * size}));
}

at::Tensor GruImpl::forward(const at::Tensor& x, const at::Tensor& h) {
  const std::vector<at::Tensor> a = ops::dense(x, input, input_bias).chunk(3, 1),
                                b = ops::dense(h, hidden, hidden_bias).chunk(3, 1);
  const at::Tensor r = at::sigmoid(a[0] + b[0]), u = at::sigmoid(a[1] + b[1]), n = at::tanh(a[2] + r * b[2]);
  return n + u * (h - n);
}

NetPlan pixel_plan(int64_t channels, int64_t height, int64_t width, int64_t filters) {
  ops::require("model", std::min(height, width) >= kDownKernel, "cwvae takes frames of at least {} x {}, got {} x {}",
               kDownKernel, kDownKernel, height, width);
  NetPlan plan;
  int64_t h = height, w = width, in = channels;
  while (h >= kDownKernel && w >= kDownKernel &&
         (plan.down.empty() || std::min(down_size(h, 0), down_size(w, 0)) >= 2)) {
    const int64_t out = filters << std::min<size_t>(plan.down.size(), 3);
    plan.down.push_back({in, out, kDownKernel, kDownKernel, 0});
    h = down_size(h, 0), w = down_size(w, 0), in = out;
  }
  plan.features = in * h * w;
  plan.channels = plan.features;

  int64_t rows = height, columns = width;
  for (size_t i = 0; i < plan.down.size(); ++i) {  // from the last to the first
    const bool first = i + 1 == plan.down.size();
    const int64_t kh = first ? rows : 6 - rows % 2, kw = first ? columns : 6 - columns % 2;
    const int64_t from = first ? plan.features : plan.down[i].out, to = i == 0 ? channels : plan.down[i - 1].out;
    plan.up.insert(plan.up.begin(), {from, to, kh, kw, 0});
    rows = (rows - kh) / kStride + 1, columns = (columns - kw) / kStride + 1;
  }
  return plan;
}

NetPlan code_plan(int64_t in, int64_t out, int64_t height, int64_t width, int64_t filters) {
  NetPlan plan;
  int64_t h = height, w = width, channels = in;
  while (h % 2 == 0 && w % 2 == 0 && std::min(h, w) >= 4) {
    const int64_t next = filters << std::min<size_t>(plan.down.size() + 1, 3);
    plan.down.push_back({channels, next, kDownKernel, kDownKernel, 1});
    h /= 2, w /= 2, channels = next;
  }
  ops::require("model", !plan.down.empty(), "cwvae takes grids of codes that halve, of at least 4 x 4, got {} x {}",
               height, width);
  plan.features = channels * h * w;
  plan.channels = channels, plan.height = h, plan.width = w;
  for (size_t i = plan.down.size(); i-- > 0;)
    plan.up.push_back({plan.down[i].out, i == 0 ? out : plan.down[i].in, kDownKernel, kDownKernel, 1});
  return plan;
}

DownNetImpl::DownNetImpl(const NetPlan& plan, const Stream& stream) {
  for (const NetLayer& l : plan.down) {
    const size_t i = weights_.size();
    Stream own = stream.split("down", i);
    const int64_t area = l.kernel_h * l.kernel_w;
    weights_.push_back(register_parameter(layer_name("weight", i), glorot_uniform({l.out, l.in, l.kernel_h, l.kernel_w},
                                                                                  l.in * area, l.out * area, own)));
    biases_.push_back(register_parameter(layer_name("bias", i), at::zeros({l.out})));
    paddings_.push_back(l.padding);
  }
}

at::Tensor DownNetImpl::forward(const at::Tensor& x) {
  at::Tensor h = x;
  for (size_t i = 0; i < paddings_.size(); ++i) {
    h = at::leaky_relu(ops::strided_conv2d(h, weights_[i], biases_[i], kStride, paddings_[i]), kSlope);
  }
  return h.flatten(1);
}

UpNetImpl::UpNetImpl(int64_t in, const NetPlan& plan, const Stream& stream)
    : begin_{-1, plan.channels, plan.height, plan.width} {
  first_ = register_module("first", Linear(in, plan.features, stream.split("first")));
  for (const NetLayer& l : plan.up) {
    const size_t i = weights_.size();
    Stream own = stream.split("up", i);
    const int64_t area = l.kernel_h * l.kernel_w;
    weights_.push_back(register_parameter(layer_name("weight", i), glorot_uniform({l.in, l.out, l.kernel_h, l.kernel_w},
                                                                                  l.in * area, l.out * area, own)));
    biases_.push_back(register_parameter(layer_name("bias", i), at::zeros({l.out})));
    paddings_.push_back(l.padding);
  }
}

at::Tensor UpNetImpl::forward(const at::Tensor& x) {
  at::Tensor h = first_(x).view(begin_);
  for (size_t i = 0; i < paddings_.size(); ++i) {
    if (i > 0) h = at::leaky_relu(h, kSlope);
    h = ops::transposed_conv2d(h, weights_[i], biases_[i], kStride, paddings_[i]);
  }
  return h;
}

}  // namespace convssm::models::cwvae
