// All that is known of a metric stands in one entry: definition, reference, what it takes, which direction is better.
// An evaluation writes it beside its numbers.
#include "convssm/metrics/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "convssm/base/nearest.h"
#include "convssm/metrics/i3d.h"
#include "convssm/metrics/lpips.h"
#include "convssm/metrics/openstl.h"
#include "convssm/metrics/pixel_sums.h"
#include "convssm/metrics/psnr.h"
#include "convssm/metrics/ssim.h"

namespace convssm::metrics {
namespace {

using Function = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

MetricInfo lpips(LpipsBackbone backbone, const char* title, const char* features, const char* note) {
  MetricInfo info;
  info.name = lpips_name(backbone);
  info.definition = fmt::format("learned perceptual distance v0.1 on the activations of {}{}", title, note);
  info.input = "float32 in [0,1], from 32x32, 1 or 3 channels, grey repeated";
  info.reference = "Zhang et al. 2018, the lpips package with net and normalize=True";
  info.better = -1, info.smallest_side = lpips_least_size, info.pictures = true;
  info.weights = {features, info.name};
  info.make = [backbone, weights = info.weights](const WeightFolder& folder) -> FrameMetric {
    const std::string network = folder.existing(weights[0]), heads = folder.existing(weights[1]);
    const auto metric = std::make_shared<const Lpips>(backbone, network, heads);
    return [metric](const at::Tensor& truth, const at::Tensor& forecast) { return (*metric)(truth, forecast); };
  };
  return info;
}

MetricInfo of_frames(const char* name, const char* definition, const char* input, const char* reference,
                     Function function) {
  MetricInfo info;
  info.name = name, info.definition = definition, info.input = input, info.reference = reference;
  info.make = [function](const WeightFolder&) { return FrameMetric(function); };
  return info;
}

MetricInfo psnr(const char* name, const char* definition, const char* input, const char* reference, Function function) {
  MetricInfo info = of_frames(name, definition, input, reference, function);
  info.better = +1, info.digits = 2;
  return info;
}

MetricInfo psnr_bytes() {
  MetricInfo info = psnr("psnr_u8", "the same of 8-bit pixels, with 255 as the peak", "uint8",
                         "skimage peak_signal_noise_ratio of uint8 images", psnr_u8);
  info.bytes = true;
  return info;
}

MetricInfo ssim(const char* name, const char* definition, const char* reference, int64_t side, Function function) {
  const std::string input = fmt::format("float32 in [0,1], from {0}x{0}", side);
  MetricInfo info = of_frames(name, definition, input.c_str(), reference, function);
  info.better = +1, info.smallest_side = side;
  return info;
}

MetricInfo pixel_sum(const char* name, const char* what, const char* reference, Function function) {
  const std::string definition = fmt::format("{} error summed over the pixels of each frame", what);
  MetricInfo info = of_frames(name, definition.c_str(), "float32 in [0,1]", reference, function);
  info.better = -1, info.digits = 2;
  return info;
}

// As the tables of OpenSTL give it, of frames before any cut to 8 bits.
MetricInfo openstl(const char* name, const char* definition, int better, int digits, int64_t side, Function function) {
  const std::string input = fmt::format("float32 in [0,1], not cut to 8 bits, from {0}x{0}", side);
  MetricInfo info = of_frames(name, definition, input.c_str(), "OpenSTL with scikit-image up to 0.19", function);
  info.better = better, info.digits = digits, info.smallest_side = side, info.uncut = true, info.by_name = true;
  return info;
}

MetricInfo fvd() {
  MetricInfo info;
  info.name = "fvd_i3d";
  info.definition = "Fréchet distance between the I3D logits of two sets of clips, context included";
  info.input =
      "float32 in [0,1], clips from 10 frames on, 1 or 3 channels; bilinear resize to 224x224 by TensorFlow 1's rule "
      "without antialiasing, grey repeated";
  info.reference = "Unterthiner et al. 2018; the paper in chunks of 256 clips";
  info.better = -1, info.digits = 1, info.fewest_frames = i3d_fewest_frames, info.pictures = true;
  info.weights = {"i3d"};
  return info;
}

std::vector<MetricInfo> make_list() {
  return {
      psnr("psnr_f01", "peak signal-to-noise ratio in dB: -10 log10 of the mean squared error of each frame",
           "float32 in [0,1]", "the paper; skimage peak_signal_noise_ratio(data_range=1)", psnr_f01),
      psnr_bytes(),
      ssim("ssim_gauss11", "structural similarity: 11x11 Gaussian window inside the frame, sigma 1.5, per channel",
           "the paper; skimage gaussian_weights=True, use_sample_covariance=False", ssim_gauss11_side, ssim_gauss11),
      ssim("ssim_uniform7",
           "structural similarity: 7x7 uniform window inside the frame, unbiased variances, per channel",
           "skimage structural_similarity(data_range=1) by default", ssim_uniform7_side, ssim_uniform7),
      pixel_sum("mse_sum", "squared", "NumPy; mse_openstl is without the cut to 8 bits", mse_sum),
      pixel_sum("mae_sum", "absolute", "NumPy; mae_openstl is without the cut to 8 bits", mae_sum),
      lpips(LpipsBackbone::squeeze, "SqueezeNet 1.1", "squeezenet", ""),
      lpips(LpipsBackbone::alex, "AlexNet", "alexnet", ", as in the paper's tables"),
      lpips(LpipsBackbone::vgg, "VGG16", "vgg16", ""),
      fvd(),
      openstl("mse_openstl", "squared error summed over the pixels of each frame", -1, 2, 1, mse_sum),
      openstl("mae_openstl", "absolute error summed over the pixels of each frame", -1, 2, 1, mae_sum),
      openstl("ssim_openstl", "as ssim_uniform7, but with constants for a data range of 2", +1, 3, ssim_uniform7_side,
              ssim_openstl),
      openstl("psnr_openstl", "as psnr_f01", +1, 2, 1, psnr_f01),
  };
}

}  // namespace

const std::vector<MetricInfo>& all_metrics() {
  static const std::vector<MetricInfo> list = make_list();
  return list;
}

const MetricInfo& find_metric(const std::string& name) {
  std::vector<std::string> known;
  for (const MetricInfo& metric : all_metrics()) {
    if (metric.name == name) return metric;
    known.push_back(metric.name);
  }
  fail_unknown("unknown metric", name, known);
}

std::vector<std::string> missing_weights(const MetricInfo& metric, const WeightFolder& folder) {
  std::vector<std::string> missing;
  for (const std::string& name : metric.weights) {
    if (!folder.has(name)) missing.push_back(name);
  }
  return missing;
}

std::string objection(const MetricInfo& metric, const ClipSize& size) {
  if (metric.bytes && !size.bytes) return "the pixels are not 8-bit numbers";
  if (metric.pictures && size.channels != 1 && size.channels != 3) {
    return fmt::format("it takes 1 or 3 channels, the frames have {}", size.channels);
  }
  if (std::min(size.height, size.width) < metric.smallest_side) {
    return fmt::format("it takes frames from {0}x{0} on, these are {1}x{2}", metric.smallest_side, size.height,
                       size.width);
  }
  if (size.frames < metric.fewest_frames) {
    return fmt::format("it takes clips from {} frames on, these have {}", metric.fewest_frames, size.frames);
  }
  return "";
}

}  // namespace convssm::metrics
