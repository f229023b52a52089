#include "convssm/run/perceptual.h"

#include <ATen/ATen.h>

#include "convssm/metrics/registry.h"
#include "convssm/models/vqgan/vqgan.h"

namespace convssm::run {
namespace {

metrics::LpipsBackbone backbone_of(const std::string& metric) {
  for (const auto backbone : {metrics::LpipsBackbone::squeeze, metrics::LpipsBackbone::alex}) {
    if (metric == metrics::lpips_name(backbone)) return backbone;
  }
  return metrics::LpipsBackbone::vgg;
}

}  // namespace

void give_perceptual(models::Model& model, const metrics::WeightFolder& weights) {
  auto* vqgan = dynamic_cast<models::VqGan*>(&model);
  if (vqgan == nullptr || vqgan->options().perceptual == "none") return;
  const metrics::MetricInfo& metric = metrics::find_metric("lpips_" + vqgan->options().perceptual);
  const models::VqAutoencoderOptions& frames = vqgan->options().autoencoder;
  const std::string why = metrics::objection(metric, {1, frames.coder.channels, frames.coder.height, frames.width});
  if (!why.empty()) return vqgan->set_perceptual(nullptr, why);
  const auto missing = metrics::missing_weights(metric, weights);
  if (!missing.empty()) return vqgan->set_perceptual(nullptr, weights.missing_text(missing[0]));
  const metrics::Lpips lpips(backbone_of(metric.name), weights.existing(metric.weights[0]),
                             weights.existing(metric.weights[1]));
  const auto there = at::TensorOptions().dtype(at::kFloat).device(models::device_of(model));
  vqgan->set_perceptual(std::make_shared<metrics::Lpips>(lpips.to(there)));
}

}  // namespace convssm::run
