// Some of the steps are a diffusion of their own: its beta is 1 - alpha_bar_t / alpha_bar_before, and the denoiser is told the step
// of the whole one.
#include "convssm/models/latent_fdm/diffusion.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace convssm::models::latent_fdm {
namespace {

constexpr double kFirstBeta = 1e-4, kLastBeta = 0.02, kPublishedSteps = 1000;
constexpr double kCosineOffset = 0.008, kMostBeta = 0.999;

double cosine_bar(double share) {
  const double c = std::cos((share + kCosineOffset) / (1 + kCosineOffset) * std::numbers::pi / 2);
  return c * c;
}

double beta(const DiffusionOptions& o, int64_t i) {
  const double n = static_cast<double>(o.steps), at = static_cast<double>(i);
  if (o.cosine) return std::min(1 - cosine_bar((at + 1) / n) / cosine_bar(at / n), kMostBeta);
  const double share = o.steps > 1 ? at / (n - 1) : 0;
  return kPublishedSteps / n * (kFirstBeta + (kLastBeta - kFirstBeta) * share);
}

}  // namespace

std::vector<double> alpha_bars(const DiffusionOptions& options) {
  std::vector<double> bars;
  double bar = 1;
  for (int64_t i = 0; i < options.steps; ++i) bars.push_back(bar *= 1 - std::min(beta(options, i), kMostBeta));
  return bars;
}

Sampler::Sampler(const DiffusionOptions& diffusion, const SamplerOptions& options) : options_(options) {
  const std::vector<double> bars = alpha_bars(diffusion);
  const int64_t last = diffusion.steps - 1, count = options.steps == 0 ? diffusion.steps : options.steps;
  for (int64_t i = count; i-- > 0;) {
    const double share = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 1;
    steps_.push_back(static_cast<int64_t>(std::floor(share * static_cast<double>(last) + 0.5)));
    bars_.push_back(bars[static_cast<size_t>(steps_.back())]);
  }
  for (size_t i = 0; i < bars_.size(); ++i) before_.push_back(i + 1 < bars_.size() ? bars_[i + 1] : 1.0);
}

bool Sampler::draws(int64_t i) const { return i + 1 < count() && (!options_.ddim || options_.eta > 0); }

at::Tensor Sampler::back(int64_t i, const at::Tensor& x, const at::Tensor& eps, const at::Tensor& noise) const {
  const double bar = bars_[static_cast<size_t>(i)], before = before_[static_cast<size_t>(i)];
  at::Tensor x0 = (x - std::sqrt(1 - bar) * eps) / std::sqrt(bar);
  if (options_.clamp > 0) x0 = x0.clamp(-options_.clamp, options_.clamp);
  at::Tensor mean;
  double sigma = 0;
  if (options_.ddim) {
    const at::Tensor clamped = (x - std::sqrt(bar) * x0) / std::sqrt(1 - bar);
    sigma = options_.eta * std::sqrt((1 - before) / (1 - bar) * (1 - bar / before));
    mean = std::sqrt(before) * x0 + std::sqrt(std::max(1 - before - sigma * sigma, 0.0)) * clamped;
  } else {
    const double b = 1 - bar / before;
    sigma = std::sqrt(b);  // the larger of the two published ones
    mean = b * std::sqrt(before) / (1 - bar) * x0 + (1 - before) * std::sqrt(1 - b) / (1 - bar) * x;
  }
  return draws(i) ? mean + sigma * noise : mean;
}

}  // namespace convssm::models::latent_fdm
