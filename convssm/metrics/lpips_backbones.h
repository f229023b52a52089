// The convolutional networks that LPIPS looks through, each up to its last compared activation: SqueezeNet 1.1
// (Iandola et al. 2016, arXiv 1602.07360), AlexNet in its one-tower form (Krizhevsky 2014, arXiv 1404.5997) and VGG16
// (Simonyan, Zisserman 2015, arXiv 1409.1556). Every convolution is followed by a ReLU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "convssm/io/safetensors.h"

namespace convssm::metrics {

enum class LpipsBackbone { squeeze, alex, vgg };

// "lpips_squeeze", ...: the metric's name in tables and errors.
const char* lpips_name(LpipsBackbone backbone);

// Every tensor of the network with its shape, under torchvision's names without "features."; and those of the heads.
std::vector<std::pair<std::string, std::vector<int64_t>>> lpips_network_tensors(LpipsBackbone backbone);
std::vector<std::pair<std::string, std::vector<int64_t>>> lpips_head_tensors(LpipsBackbone backbone);

struct WeightFile {
  WeightFile(LpipsBackbone backbone, const std::string& file_path);
  // Error(data) that names file, tensor, expected and found.
  at::Tensor read(const std::string& name, const std::vector<int64_t>& shape) const;

  const char* metric;
  std::string path;
  io::SafetensorsFile file;
};

class LpipsNetwork {
 public:
  // Weights by their torchvision names without "features.": "0.weight", "3.squeeze.weight", ...
  LpipsNetwork(LpipsBackbone backbone, const std::string& path);

  // Channels of each compared activation.
  static std::vector<int64_t> channels(LpipsBackbone backbone);

  // x [N,3,H,W], scaled as the network was trained -> on_tap(k, activation [N,C_k,H_k,W_k]) for k = 0, 1, ...: an
  // activation lives no longer than its turn unless it is kept. Differentiable in x.
  using OnTap = std::function<void(size_t k, const at::Tensor& activation)>;
  void run(at::Tensor x, const OnTap& on_tap) const;

  // The same weights of another type or on another device.
  LpipsNetwork to(const at::TensorOptions& options) const;

 private:
  struct Convolution {
    at::Tensor weight, bias;
    int64_t stride, padding;
    at::Tensor operator()(const at::Tensor& x) const;
  };
  struct Layer {
    std::vector<Convolution> convolutions;  // one, or the three of a fire module, or none: a pool
    int64_t pool_kernel = 0;
    bool pool_ceil = false;
    bool tap = false;
    at::Tensor operator()(const at::Tensor& x) const;
  };
  std::vector<Layer> layers_;
};

}  // namespace convssm::metrics
