// The networks are tables of steps with torchvision's numbers as names, so that its files can be read and only what
// comes before the last compared activation is. Without gradients pooling and concatenation run in our kernels, with
// gradients in libtorch.
#include "convssm/metrics/lpips_backbones.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <span>

#include "convssm/io/tensor.h"
#include "convssm/metrics/lpips_kernels.h"
#include "convssm/ops/check.h"
#include "convssm/ops/device.h"

namespace convssm::metrics {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

// A step of a network as it is published; `name` is its number in torchvision's list.
struct Step {
  enum Kind { conv, fire, pool } kind;
  const char* name;
  int64_t in, out;
  int64_t kernel, stride, padding;
  int64_t squeezed;  // channels between the two halves of a fire module
  bool ceil;         // a last window that leaves the frame counts
  bool tap;          // the activation is compared
};

constexpr Step conv(const char* name, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding) {
  return {Step::conv, name, in, out, kernel, stride, padding, 0, false, false};
}
constexpr Step fire(const char* name, int64_t in, int64_t squeezed, int64_t out) {
  return {Step::fire, name, in, out, 3, 1, 1, squeezed, false, false};
}
constexpr Step pool(int64_t kernel, bool ceil) { return {Step::pool, "", 0, 0, kernel, 2, 0, 0, ceil, false}; }
constexpr Step tapped(Step step) {
  step.tap = true;
  return step;
}

constexpr Step kSqueeze[] = {
    tapped(conv("0", 3, 64, 3, 2, 0)),
    pool(3, true),
    fire("3", 64, 16, 128),
    tapped(fire("4", 128, 16, 128)),
    pool(3, true),
    fire("6", 128, 32, 256),
    tapped(fire("7", 256, 32, 256)),
    pool(3, true),
    tapped(fire("9", 256, 48, 384)),
    tapped(fire("10", 384, 48, 384)),
    tapped(fire("11", 384, 64, 512)),
    tapped(fire("12", 512, 64, 512)),
};

constexpr Step kAlex[] = {
    tapped(conv("0", 3, 64, 11, 4, 2)),    pool(3, false),
    tapped(conv("3", 64, 192, 5, 1, 2)),   pool(3, false),
    tapped(conv("6", 192, 384, 3, 1, 1)),  tapped(conv("8", 384, 256, 3, 1, 1)),
    tapped(conv("10", 256, 256, 3, 1, 1)),
};

constexpr Step kVgg[] = {
    conv("0", 3, 64, 3, 1, 1),
    tapped(conv("2", 64, 64, 3, 1, 1)),
    pool(2, false),
    conv("5", 64, 128, 3, 1, 1),
    tapped(conv("7", 128, 128, 3, 1, 1)),
    pool(2, false),
    conv("10", 128, 256, 3, 1, 1),
    conv("12", 256, 256, 3, 1, 1),
    tapped(conv("14", 256, 256, 3, 1, 1)),
    pool(2, false),
    conv("17", 256, 512, 3, 1, 1),
    conv("19", 512, 512, 3, 1, 1),
    tapped(conv("21", 512, 512, 3, 1, 1)),
    pool(2, false),
    conv("24", 512, 512, 3, 1, 1),
    conv("26", 512, 512, 3, 1, 1),
    tapped(conv("28", 512, 512, 3, 1, 1)),
};

std::span<const Step> steps(LpipsBackbone backbone) {
  switch (backbone) {
    case LpipsBackbone::squeeze:
      return kSqueeze;
    case LpipsBackbone::alex:
      return kAlex;
    default:
      return kVgg;
  }
}

// Our kernels have no gradients: they run where none is asked for.
bool on_kernels(const at::Tensor& x) {
  return !x.requires_grad() && ops::takes_kernels(x) && x.scalar_type() == at::kFloat;
}

at::Tensor pooled(const at::Tensor& frames, int64_t kernel, bool ceil) {
  if (!on_kernels(frames)) return at::max_pool2d(frames, kernel, 2, 0, 1, ceil);
  const at::Tensor x = frames.contiguous(kChannelsLast);
  const auto windows = [&](int64_t size) { return (size - kernel + (ceil ? 1 : 0)) / 2 + 1; };
  MaxPool pool{nullptr, nullptr, x.size(2), x.size(3), x.size(1), windows(x.size(2)), windows(x.size(3)), kernel};
  at::Tensor out =
      at::empty({x.size(0), pool.channels, pool.out_height, pool.out_width}, x.options().memory_format(kChannelsLast));
  const float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  at::parallel_for(0, x.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      MaxPool frame = pool;
      frame.x = from + n * pool.height * pool.width * pool.channels;
      frame.out = to + n * pool.out_height * pool.out_width * pool.channels;
      max_pool(frame);
    }
  });
  return out;
}

at::Tensor concat_of_relu(const at::Tensor& a, const at::Tensor& b) {
  if (!on_kernels(a)) return at::cat({at::relu(a), at::relu(b)}, 1);
  const at::Tensor first = a.contiguous(kChannelsLast), second = b.contiguous(kChannelsLast);
  const int64_t channels = a.size(1), pixels = a.numel() / channels;
  at::Tensor out = at::empty({a.size(0), 2 * channels, a.size(2), a.size(3)}, a.options().memory_format(kChannelsLast));
  const float* from[] = {first.data_ptr<float>(), second.data_ptr<float>()};
  float* to = out.data_ptr<float>();
  constexpr int64_t grain = 256;
  at::parallel_for(0, pixels, grain, [&](int64_t begin, int64_t end) {
    const int64_t offset = begin * channels;
    relu_concat({from[0] + offset, from[1] + offset, to + 2 * offset, end - begin, channels});
  });
  return out;
}

}  // namespace

const char* lpips_name(LpipsBackbone backbone) {
  switch (backbone) {
    case LpipsBackbone::squeeze:
      return "lpips_squeeze";
    case LpipsBackbone::alex:
      return "lpips_alex";
    default:
      return "lpips_vgg";
  }
}

std::vector<std::pair<std::string, std::vector<int64_t>>> lpips_network_tensors(LpipsBackbone backbone) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> tensors;
  const auto add = [&](const std::string& name, int64_t in, int64_t out, int64_t kernel) {
    tensors.push_back({name + ".weight", {out, in, kernel, kernel}});
    tensors.push_back({name + ".bias", {out}});
  };
  for (const Step& step : steps(backbone)) {
    const std::string name = step.name;
    if (step.kind == Step::conv) add(name, step.in, step.out, step.kernel);
    if (step.kind != Step::fire) continue;
    add(name + ".squeeze", step.in, step.squeezed, 1);
    add(name + ".expand1x1", step.squeezed, step.out / 2, 1);
    add(name + ".expand3x3", step.squeezed, step.out / 2, 3);
  }
  return tensors;
}

std::vector<std::pair<std::string, std::vector<int64_t>>> lpips_head_tensors(LpipsBackbone backbone) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> tensors;
  for (const int64_t channels : LpipsNetwork::channels(backbone)) {
    tensors.push_back({fmt::format("lin{}.model.1.weight", tensors.size()), {1, channels, 1, 1}});
  }
  return tensors;
}

WeightFile::WeightFile(LpipsBackbone backbone, const std::string& file_path)
    : metric(lpips_name(backbone)), path(file_path), file(file_path) {}

at::Tensor WeightFile::read(const std::string& name, const std::vector<int64_t>& shape) const {
  const auto refuse = [&](const std::string& found) {
    fail(ErrorKind::data, "[{}] {}: {} must be f32 {}, got {}; the file may be that of another backbone", metric, path,
         name, ops::shape_text(shape), found);
  };
  if (!file.contains(name)) refuse("no such tensor");
  const io::TensorInfo& info = file.info(name);
  if (info.dtype != io::DType::f32 || info.shape != shape) {
    refuse(fmt::format("{} {}", io::dtype_name(info.dtype), ops::shape_text(info.shape)));
  }
  const at::Tensor weight = io::to_tensor(file.read(name));
  ops::require_finite(metric, fmt::format("{} of {}", name, path).c_str(), weight);
  return weight;
}

LpipsNetwork::LpipsNetwork(LpipsBackbone backbone, const std::string& path) {
  const WeightFile file(backbone, path);
  const auto read = [&](const std::string& name, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                        int64_t padding) {
    const at::Tensor weight = file.read(name + ".weight", {out, in, kernel, kernel});
    return Convolution{weight.contiguous(kChannelsLast), file.read(name + ".bias", {out}), stride, padding};
  };
  for (const Step& step : steps(backbone)) {
    Layer layer;
    const std::string name = step.name;
    if (step.kind == Step::conv) {
      layer.convolutions = {read(name, step.in, step.out, step.kernel, step.stride, step.padding)};
    } else if (step.kind == Step::fire) {
      layer.convolutions = {read(name + ".squeeze", step.in, step.squeezed, 1, 1, 0),
                            read(name + ".expand1x1", step.squeezed, step.out / 2, 1, 1, 0),
                            read(name + ".expand3x3", step.squeezed, step.out / 2, 3, 1, 1)};
    }
    layer.pool_kernel = step.kernel;
    layer.pool_ceil = step.ceil;
    layer.tap = step.tap;
    layers_.push_back(std::move(layer));
  }
}

std::vector<int64_t> LpipsNetwork::channels(LpipsBackbone backbone) {
  std::vector<int64_t> out;
  for (const Step& step : steps(backbone)) {
    if (step.tap) out.push_back(step.out);
  }
  return out;
}

at::Tensor LpipsNetwork::Convolution::operator()(const at::Tensor& x) const {
  return at::conv2d(x, weight, bias, stride, padding);
}

at::Tensor LpipsNetwork::Layer::operator()(const at::Tensor& x) const {
  if (convolutions.empty()) return pooled(x, pool_kernel, pool_ceil);
  const at::Tensor y = convolutions[0](x).relu_();
  return convolutions.size() == 1 ? y : concat_of_relu(convolutions[1](y), convolutions[2](y));
}

void LpipsNetwork::run(at::Tensor x, const OnTap& on_tap) const {
  x = x.contiguous(kChannelsLast);
  size_t k = 0;
  for (const Layer& layer : layers_) {
    x = layer(x);
    if (layer.tap) on_tap(k++, x);
  }
}

LpipsNetwork LpipsNetwork::to(const at::TensorOptions& options) const {
  LpipsNetwork moved = *this;
  for (Layer& layer : moved.layers_) {
    for (Convolution& convolution : layer.convolutions) {
      convolution.weight = convolution.weight.to(options);
      convolution.bias = convolution.bias.to(options);
    }
  }
  return moved;
}

}  // namespace convssm::metrics
