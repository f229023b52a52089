// LPIPS v0.1 (Zhang et al. 2018, arXiv 1801.03924): how different two frames look to a network trained on photographs.
//   LPIPS = sum over layers k of the mean over pixels of sum_c w_kc (f_kc/|f_k| - g_kc/|g_k|)^2
// f and g are the ReLU activations of the two frames, |.| over channels (plus 1e-10), w >= 0 the learned heads.
// Numbers of different backbones are not comparable; the paper's tables use AlexNet.
//   const Lpips lpips(LpipsBackbone::alex, features_path, heads_path);   lpips(truth, forecast).mean()
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "convssm/metrics/lpips_backbones.h"

namespace convssm::metrics {

constexpr int64_t lpips_least_size = 32;  // height and width, so that every layer of every backbone has a pixel

class Lpips {
 public:
  // Two safetensors files: the network by its torchvision names without "features." ("0.weight", ...), and the heads
  // "linK.model.1.weight" [1,C,1,1]. Error(data) names the file, the tensor, what was expected and what was found.
  Lpips(LpipsBackbone backbone, const std::string& features_path, const std::string& heads_path);

  // "lpips_squeeze", "lpips_alex" or "lpips_vgg".
  const char* name() const { return lpips_name(backbone_); }

  // truth, forecast [...,C,H,W] float32 in [0,1], C 1 (grey, used as red, green and blue) or 3, H and W at least 32
  // -> [...] float64, one value per frame. Any number of frames: only a few go through the network at a time.
  at::Tensor operator()(const at::Tensor& truth, const at::Tensor& forecast) const;

  // The same before the sum over layers: [layers,...].
  at::Tensor layers(const at::Tensor& truth, const at::Tensor& forecast) const;

  // For training: x, y [N,C,H,W] in [-1,1], of the type and device of the weights -> [N], differentiable in x and y.
  // The range is not checked: what a decoder puts out may leave it.
  at::Tensor loss(const at::Tensor& x, const at::Tensor& y) const;

  // The same metric with weights of another type or on another device, for `loss`.
  Lpips to(const at::TensorOptions& options) const;

 private:
  std::vector<at::Tensor> activations(const at::Tensor& x) const;

  LpipsBackbone backbone_;
  LpipsNetwork network_;
  std::vector<at::Tensor> heads_;  // each [C_k]
  at::Tensor shift_, scale_;       // the network's input is (x - shift) / scale for x in [-1,1]
};

}  // namespace convssm::metrics
